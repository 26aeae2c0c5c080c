import { type IptablesRule, optionOf } from '../node/parse-iptables-rules.ts';
import { prefixContains } from '../node/prefix-contains.ts';
import {
  allMatch,
  type MatchResult,
  matchLink,
  negated,
  type Packet,
  type RuleStep,
  type RuleVerdict,
} from './evaluate-chain.ts';
import { isRead } from './queue-listeners.ts';
import { equalFlags, iptablesFlags, ordinaryFlags } from './tcp-flags.ts';

/**
 * Evaluates the conditions of iptables rules for a packet. Rules without a decision or a change are left out.
 * @param listeners numbers of the queues that a program reads from; undefined where they are not known
 * @see iptables(8), iptables-extensions(8)
 */
export function evaluateIptablesRules(
  rules: readonly IptablesRule[],
  packet: Packet,
  listeners: readonly number[] | undefined,
): readonly RuleStep[] {
  return rules.flatMap(({ args }) => {
    const verdict = verdictOf(args, listeners);
    return verdict === undefined ? [] : [{ match: matchRule(args, packet), verdict }];
  });
}

/** Targets after which the packet continues with the next rule. */
const PASSING = new Set(['LOG', 'NFLOG', 'ULOG', 'CONNMARK', 'TCPMSS', 'SET', 'TRACE', 'CT', 'DSCP']);

function verdictOf(args: readonly string[], listeners: readonly number[] | undefined): RuleVerdict | undefined {
  const at = args.findIndex((arg) => arg === '-j' || arg === '-g');
  const target = args[at + 1];
  if (at < 0 || target === undefined || PASSING.has(target)) return undefined;
  if (target === 'ACCEPT') return { kind: 'accept' };
  if (target === 'DROP' || target === 'REJECT') return { kind: 'drop' };
  if (target === 'RETURN') return { kind: 'return' };
  if (target === 'NFQUEUE') return queueVerdict(args, listeners);
  const option = optionOf(args, '--set-xmark', '--ttl-set', '--hl-set');
  if (target === 'MARK') return { kind: 'mark', after: (mark) => markAfter(option, mark) };
  if (target === 'TTL' || target === 'HL') {
    return option === undefined ? undefined : { kind: 'ttl', value: Number(option) };
  }
  return { kind: args[at] === '-g' ? 'goto' : 'jump', chain: target };
}

function queueVerdict(args: readonly string[], listeners: readonly number[] | undefined): RuleVerdict {
  const [first = 0, last = first] = (optionOf(args, '--queue-num', '--queue-balance') ?? '0').split(':').map(Number);
  const isPassed = args.includes('--queue-bypass') || isRead({ first, last }, listeners);
  return { kind: isPassed ? 'accept' : 'drop' };
}

/** The kernel clears the bits of the mask and then XORs the value in. iptables-save writes each change of the mark so. */
function markAfter(xmark: string | undefined, mark: number): number | undefined {
  const [value, mask = 0xffffffff] = xmark?.split('/').map(Number) ?? [];
  return value === undefined ? undefined : ((mark & ~mask) ^ value) >>> 0;
}

function matchRule(args: readonly string[], packet: Packet): MatchResult {
  const conditions = conditionsOf(args);
  const answer = allMatch(
    conditions.map((condition) => {
      const one = matchCondition(condition, packet, args);
      return condition.isNegated ? negated(one) : one;
    }),
  );
  if (typeof answer === 'string') return answer;
  // The whole condition, as iptables-save prints it: one option alone says little.
  const end = args.findIndex((arg) => TARGET_OPTIONS.has(arg));
  return { notEvaluated: [args.slice(0, end).join(' ')] };
}

/** An option with its values: `! --tcp-flags SYN,ACK SYN`. */
type Condition = { readonly option: string; readonly values: readonly string[]; readonly isNegated: boolean };

/** Options after the target belong to the target. */
const TARGET_OPTIONS: ReadonlySet<string> = new Set(['-j', '-g']);

function conditionsOf(args: readonly string[]): readonly Condition[] {
  const conditions: Condition[] = [];
  let isNegated = false;
  for (let at = 0; at < args.length; ) {
    const option = args[at++] ?? '';
    if (TARGET_OPTIONS.has(option)) break;
    if (option === '!') {
      isNegated = true;
      continue;
    }
    const first = at;
    // A comment may look like an option.
    if (option === '--comment') at++;
    else while (at < args.length && !isOption(args[at] ?? '')) at++;
    conditions.push({ option, values: args.slice(first, at), isNegated });
    isNegated = false;
  }
  return conditions;
}

function isOption(word: string): boolean {
  return word === '!' || /^--?[a-zA-Z]/.test(word);
}

/** Options of the match rpfilter; they have no value. @see iptables-extensions(8) */
const RPFILTER_OPTIONS: readonly string[] = ['--loose', '--validmark', '--accept-local', '--invert'];

/**
 * The match rpfilter asks for the way back as a packet without a mark would, unless it has `--validmark`. Whether routes lead back,
 * explain evaluates by itself.
 */
function matchWayBack(args: readonly string[], { isMarkedWayBack = false }: Packet): MatchResult {
  if (!isMarkedWayBack || args.includes('--loose')) return 'maybe';
  return args.includes('--validmark') === args.includes('--invert') ? 'no' : 'yes';
}

/** Marks by which kube-proxy masquerades, and kubelet once had packets dropped: an ordinary connection has neither. */
const KUBE_MARKS: readonly string[] = ['0x4000/0x4000', '0x8000/0x8000'];

/** Matches that are conditions without an option. */
const BARE_MATCHES: ReadonlySet<string> = new Set(['socket', 'eui64']);

const NOT_EVALUATED: MatchResult = { notEvaluated: [''] };

function matchCondition(
  { option, values: [value = '', second = ''] }: Condition,
  packet: Packet,
  args: readonly string[],
): MatchResult {
  const { src, dst, iifs, oifs, isEstablished = false } = packet;
  if (RPFILTER_OPTIONS.includes(option)) return 'yes';
  switch (option) {
    case '-m':
      if (BARE_MATCHES.has(value)) return NOT_EVALUATED;
      return value === 'rpfilter' ? matchWayBack(args, packet) : 'yes';
    case '--comment':
      return 'yes';
    case '-s':
      return matchPrefix(value, src);
    case '-d':
      return matchPrefix(value, dst);
    case '-i':
      return matchLink(iifs, (name) => isNamed(name, value));
    case '-o':
      return matchLink(oifs, (name) => isNamed(name, value));
    case '-p':
      return value === 'tcp' || value === 'all' ? 'yes' : 'no';
    case '-f':
      return 'no';
    case '--tcp-flags':
      return equalFlags(ordinaryFlags(isEstablished), iptablesFlags(value), iptablesFlags(second)) === true
        ? 'yes'
        : 'no';
    case '--ctstate':
    case '--state':
      return value.split(',').includes(isEstablished ? 'ESTABLISHED' : 'NEW') ? 'yes' : 'no';
    case '--ctdir':
      return isEstablished ? 'maybe' : value === 'ORIGINAL' ? 'yes' : 'no';
    case '--mark':
      return KUBE_MARKS.includes(value) ? 'no' : NOT_EVALUATED;
    case '--pkt-type':
      return value === 'unicast' ? 'yes' : 'no';
    case '--src-type':
      return value === 'UNICAST' ? 'yes' : value === 'LOCAL' && iifs.length === 0 ? 'yes' : 'no';
    case '--dst-type':
      if (packet.isForNode === true) return value === 'LOCAL' ? 'yes' : 'no';
      // Before the routing decision the address may be local.
      if (value === 'UNICAST' || value === 'LOCAL')
        return oifs.length === 0 ? 'maybe' : value === 'LOCAL' ? 'no' : 'yes';
      return 'no';
    default:
      return NOT_EVALUATED;
  }
}

function matchPrefix(prefix: string, address: string | undefined): MatchResult {
  if (address === undefined) return /\/0$/.test(prefix) ? 'yes' : 'maybe';
  return prefixContains(prefix, address) ? 'yes' : 'no';
}

function isNamed(name: string, pattern: string): boolean {
  return pattern.endsWith('+') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
