/** Whether a packet fits a condition, as far as can be told. */
export type Answer = 'yes' | 'no' | 'maybe';

/** A first packet of a TCP connection that is forwarded; what is absent is not known. */
export type Packet = {
  readonly family: 4 | 6;
  readonly src?: string;
  readonly dst?: string;
  /** Names of the interfaces that it may come in by, and leave by. */
  readonly iifs: readonly string[];
  readonly oifs: readonly string[];
};

/** What a rule does with packets that fit. */
export type RuleVerdict =
  | { readonly kind: 'accept' | 'drop' | 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

/** A rule, as a packet meets it. */
export type Step = { readonly fits: Answer; readonly verdict: RuleVerdict };

/** What becomes of a packet; 'through': the chain said nothing. */
export type Fate = 'accepted' | 'dropped' | 'maybe' | 'through';

/** As many jumps as the kernel follows. @see net/netfilter NFT_JUMP_STACK_SIZE */
const MAX_JUMPS = 16;

/**
 * Follows a packet through a chain and those that it jumps to. Only what is certain counts: where some rule may accept
 * it, the answer is 'maybe'; a rule that may drop it is passed over. Pure.
 */
export function findFate(stepsOf: (chain: string) => readonly Step[], chain: string, depth = 0): Fate {
  if (depth > MAX_JUMPS) return 'maybe';
  // It may have left the chain already, without a word.
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

/** Both must fit. */
export function both(answers: readonly Answer[]): Answer {
  if (answers.includes('no')) return 'no';
  return answers.includes('maybe') ? 'maybe' : 'yes';
}

/** Either is enough. */
export function either(answers: readonly Answer[]): Answer {
  if (answers.includes('yes')) return 'yes';
  return answers.includes('maybe') ? 'maybe' : 'no';
}

/** Turns an answer around. */
export function negated(answer: Answer): Answer {
  if (answer === 'maybe') return 'maybe';
  return answer === 'yes' ? 'no' : 'yes';
}

/** Tells whether an interface fits, of those that it may be. */
export function fitsLink(names: readonly string[], isFit: (name: string) => boolean): Answer {
  const fitting = names.filter(isFit).length;
  if (fitting === 0) return 'no';
  return fitting === names.length ? 'yes' : 'maybe';
}
