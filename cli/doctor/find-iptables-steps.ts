import { holds } from '../explain/find-prefix.ts';
import { type Answer, both, fitsLink, negated, type Packet, type RuleVerdict, type Step } from './find-fate.ts';
import type { IptablesRule } from './find-iptables-rules.ts';

/**
 * Evaluates the conditions of iptables rules for a packet. Rules without a decision are left out.
 * @see iptables(8), iptables-extensions(8)
 */
export function findIptablesSteps(rules: readonly IptablesRule[], packet: Packet): readonly Step[] {
  return rules.flatMap(({ words }) => {
    const verdict = verdictOf(words);
    return verdict === undefined ? [] : [{ fits: fitsOf(words, packet), verdict }];
  });
}

/** Targets after which the packet continues with the next rule. */
const PASSING = new Set(['LOG', 'NFLOG', 'ULOG', 'MARK', 'CONNMARK', 'TCPMSS', 'SET', 'TRACE', 'CT', 'DSCP']);

function verdictOf(words: readonly string[]): RuleVerdict | undefined {
  const at = words.findIndex((word) => word === '-j' || word === '-g');
  const target = words[at + 1];
  if (at < 0 || target === undefined || PASSING.has(target)) return undefined;
  if (target === 'ACCEPT') return { kind: 'accept' };
  if (target === 'DROP' || target === 'REJECT') return { kind: 'drop' };
  if (target === 'RETURN') return { kind: 'return' };
  return { kind: words[at] === '-g' ? 'goto' : 'jump', chain: target };
}

/** Mark that kube-proxy sets on packets to masquerade; an ordinary connection does not have it. */
const MASQUERADED = '0x4000/0x4000';

function fitsOf(words: readonly string[], packet: Packet): Answer {
  const answers: Answer[] = [];
  let isNegated = false;
  for (let at = 0; at < words.length; at++) {
    const option = words[at] ?? '';
    if (option === '!') {
      isNegated = true;
      continue;
    }
    // Options after the target belong to the target.
    if (option === '-j' || option === '-g') break;
    const value = words[++at] ?? '';
    const answer = fitsOption(option, value, packet);
    answers.push(isNegated ? negated(answer) : answer);
    isNegated = false;
  }
  return both(answers);
}

function fitsOption(option: string, value: string, { src, dst, iifs, oifs }: Packet): Answer {
  switch (option) {
    case '-m':
    case '--comment':
      return 'yes';
    case '-s':
      return fitsPrefix(value, src);
    case '-d':
      return fitsPrefix(value, dst);
    case '-i':
      return fitsLink(iifs, (name) => isNamed(name, value));
    case '-o':
      return fitsLink(oifs, (name) => isNamed(name, value));
    case '-p':
      return value === 'tcp' || value === 'all' ? 'yes' : 'no';
    case '--ctstate':
    case '--state':
      return value.split(',').includes('NEW') ? 'yes' : 'no';
    case '--mark':
      return value === MASQUERADED ? 'no' : 'maybe';
    case '--dst-type':
      return value === 'LOCAL' ? 'no' : 'maybe';
    default:
      return 'maybe';
  }
}

function fitsPrefix(prefix: string, address: string | undefined): Answer {
  if (address === undefined) return /\/0$/.test(prefix) ? 'yes' : 'maybe';
  return holds(prefix, address) ? 'yes' : 'no';
}

function isNamed(name: string, pattern: string): boolean {
  return pattern.endsWith('+') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
