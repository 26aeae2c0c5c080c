/** Whether a packet matches a condition; 'maybe' when it cannot be decided. */
export type MatchResult = 'yes' | 'no' | 'maybe';

/** Packet of a TCP connection; an absent address is not known. */
export type Packet = {
  readonly family: 4 | 6;
  readonly src?: string;
  readonly dst?: string;
  /** Names of the interfaces by which it may arrive, and leave. */
  readonly iifs: readonly string[];
  readonly oifs: readonly string[];
  /** Whether it belongs to a connection that connection tracking knows; default false: it is the first. */
  readonly isEstablished?: boolean;
};

/** Action of a rule on matching packets. */
export type RuleVerdict =
  | { readonly kind: 'accept' | 'drop' | 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

/** A rule as evaluated for one packet. */
export type RuleStep = { readonly match: MatchResult; readonly verdict: RuleVerdict };

/** Result of a chain for a packet; 'through': no rule of the chain decides. */
type ChainOutcome = 'accepted' | 'dropped' | 'maybe' | 'through';

/** Limit of nested jumps, as in the kernel. @see net/netfilter NFT_JUMP_STACK_SIZE */
const MAX_JUMPS = 16;

/**
 * Evaluates a chain, and the chains that it jumps to, for a packet. Only certain results count: where a rule may accept
 * the packet, the result is 'maybe'; a rule that may drop it is ignored. Each chain is evaluated once, however often it
 * is jumped to.
 */
export function evaluateChain(stepsOf: (chain: string) => readonly RuleStep[], chain: string): ChainOutcome {
  const known = new Map<string, ChainOutcome>();
  const follow = (target: string, depth: number): ChainOutcome => {
    const found = known.get(target);
    if (found !== undefined) return found;
    if (depth > MAX_JUMPS) return 'maybe';
    // A chain that leads to itself: the kernel refuses it, and nothing is certain.
    known.set(target, 'maybe');
    const outcome = evaluateSteps(stepsOf(target), (next) => follow(next, depth + 1));
    known.set(target, outcome);
    return outcome;
  };
  return follow(chain, 0);
}

function evaluateSteps(steps: readonly RuleStep[], follow: (chain: string) => ChainOutcome): ChainOutcome {
  // True when the packet may have returned from the chain already, without a decision.
  let mayPass = false;
  for (const { match, verdict } of steps) {
    if (match === 'no') continue;
    const outcome = outcomeOf(verdict, follow);
    if (outcome === 'dropped' && match === 'maybe') continue;
    if (outcome === 'through' && verdict.kind === 'jump') continue;
    if (outcome === 'through' && match === 'maybe') {
      mayPass = true;
      continue;
    }
    return match === 'maybe' || (mayPass && outcome !== 'through') ? 'maybe' : outcome;
  }
  return 'through';
}

function outcomeOf(verdict: RuleVerdict, follow: (chain: string) => ChainOutcome): ChainOutcome {
  switch (verdict.kind) {
    case 'accept':
      return 'accepted';
    case 'drop':
      return 'dropped';
    case 'return':
      return 'through';
    default:
      return follow(verdict.chain);
  }
}

/** Returns whether all conditions match. */
export function allMatch(answers: readonly MatchResult[]): MatchResult {
  if (answers.includes('no')) return 'no';
  return answers.includes('maybe') ? 'maybe' : 'yes';
}

/** Returns whether at least one condition matches. */
export function anyMatch(answers: readonly MatchResult[]): MatchResult {
  if (answers.includes('yes')) return 'yes';
  return answers.includes('maybe') ? 'maybe' : 'no';
}

/** Returns the opposite of a match. */
export function negated(answer: MatchResult): MatchResult {
  if (answer === 'maybe') return 'maybe';
  return answer === 'yes' ? 'no' : 'yes';
}

/** Returns whether the interface matches, when it is one of several possible interfaces. */
export function matchLink(names: readonly string[], matches: (name: string) => boolean): MatchResult {
  const count = names.filter(matches).length;
  if (count === 0) return 'no';
  return count === names.length ? 'yes' : 'maybe';
}
