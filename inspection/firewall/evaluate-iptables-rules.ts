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

/** Mark that kube-proxy sets on packets to masquerade; an ordinary connection does not have it. */
const MASQUERADED = '0x4000/0x4000';

function matchRule(args: readonly string[], packet: Packet): MatchResult {
  const answers: MatchResult[] = [];
  let isNegated = false;
  for (let at = 0; at < args.length; at++) {
    const option = args[at] ?? '';
    if (option === '!') {
      isNegated = true;
      continue;
    }
    // Options after the target belong to the target.
    if (option === '-j' || option === '-g') break;
    if (RPFILTER_OPTIONS.includes(option)) continue;
    const value = args[++at] ?? '';
    const isRpfilter = option === '-m' && value === 'rpfilter';
    const answer = isRpfilter ? matchWayBack(args, packet) : matchOption(option, value, packet);
    answers.push(isNegated ? negated(answer) : answer);
    isNegated = false;
  }
  return allMatch(answers);
}

/** Options of the match rpfilter; they have no value. @see iptables-extensions(8) */
const RPFILTER_OPTIONS: readonly string[] = ['--loose', '--validmark', '--accept-local', '--invert'];

/** The match rpfilter asks for the way back as a packet without a mark would, unless it has `--validmark`. */
function matchWayBack(args: readonly string[], { isMarkedWayBack = false }: Packet): MatchResult {
  if (!isMarkedWayBack || args.includes('--loose')) return 'maybe';
  return args.includes('--validmark') === args.includes('--invert') ? 'no' : 'yes';
}

function matchOption(option: string, value: string, packet: Packet): MatchResult {
  const { src, dst, iifs, oifs, isEstablished = false } = packet;
  switch (option) {
    case '-m':
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
    case '--ctstate':
    case '--state':
      return value.split(',').includes(isEstablished ? 'ESTABLISHED' : 'NEW') ? 'yes' : 'no';
    case '--mark':
      return value === MASQUERADED ? 'no' : 'maybe';
    case '--dst-type':
      // Before the routing decision, and for the node itself, the address may be local.
      return value === 'LOCAL' && oifs.length > 0 ? 'no' : 'maybe';
    default:
      return 'maybe';
  }
}

function matchPrefix(prefix: string, address: string | undefined): MatchResult {
  if (address === undefined) return /\/0$/.test(prefix) ? 'yes' : 'maybe';
  return prefixContains(prefix, address) ? 'yes' : 'no';
}

function isNamed(name: string, pattern: string): boolean {
  return pattern.endsWith('+') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
