/** Whether a packet matches a condition; 'maybe' when it cannot be decided. */
export type Answer = 'yes' | 'no' | 'maybe';

/** First packet of a forwarded TCP connection; an absent address is not known. */
export type Packet = {
  readonly family: 4 | 6;
  readonly src?: string;
  readonly dst?: string;
  /** Names of the interfaces by which it may arrive, and leave. */
  readonly iifs: readonly string[];
  readonly oifs: readonly string[];
};

/** Action of a rule on matching packets. */
export type RuleVerdict =
  | { readonly kind: 'accept' | 'drop' | 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

/** A rule as evaluated for one packet. */
export type Step = { readonly fits: Answer; readonly verdict: RuleVerdict };

/** Result of a chain for a packet; 'through': no rule of the chain decides. */
type Fate = 'accepted' | 'dropped' | 'maybe' | 'through';

/** Limit of nested jumps, as in the kernel. @see net/netfilter NFT_JUMP_STACK_SIZE */
const MAX_JUMPS = 16;

/**
 * Evaluates a chain, and the chains that it jumps to, for a packet. Only certain results count: where a rule may accept
 * the packet, the result is 'maybe'; a rule that may drop it is ignored.
 */
export function findFate(stepsOf: (chain: string) => readonly Step[], chain: string, depth = 0): Fate {
  if (depth > MAX_JUMPS) return 'maybe';
  // True when the packet may have returned from the chain already, without a decision.
  let mayBeThrough = false;
  for (const { fits, verdict } of stepsOf(chain)) {
    if (fits === 'no') continue;
    const fate = fateOf(verdict, (target) => findFate(stepsOf, target, depth + 1));
    if (fate === 'dropped' && fits === 'maybe') continue;
    if (fate === 'through' && verdict.kind === 'jump') continue;
    if (fate === 'through' && fits === 'maybe') {
      mayBeThrough = true;
      continue;
    }
    return fits === 'maybe' || (mayBeThrough && fate !== 'through') ? 'maybe' : fate;
  }
  return 'through';
}

function fateOf(verdict: RuleVerdict, follow: (chain: string) => Fate): Fate {
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
export function both(answers: readonly Answer[]): Answer {
  if (answers.includes('no')) return 'no';
  return answers.includes('maybe') ? 'maybe' : 'yes';
}

/** Returns whether at least one condition matches. */
export function either(answers: readonly Answer[]): Answer {
  if (answers.includes('yes')) return 'yes';
  return answers.includes('maybe') ? 'maybe' : 'no';
}

/** Returns the opposite of a match. */
export function negated(answer: Answer): Answer {
  if (answer === 'maybe') return 'maybe';
  return answer === 'yes' ? 'no' : 'yes';
}

/** Returns whether the interface matches, when it is one of several possible interfaces. */
export function fitsLink(names: readonly string[], isFit: (name: string) => boolean): Answer {
  const fitting = names.filter(isFit).length;
  if (fitting === 0) return 'no';
  return fitting === names.length ? 'yes' : 'maybe';
}
