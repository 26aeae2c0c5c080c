/**
 * Whether a packet matches a condition. 'maybe': it depends on what the packet leaves open, as an address that is not known.
 * Otherwise the conditions that this program does not evaluate, as text.
 */
export type MatchResult = 'yes' | 'no' | 'maybe' | NotEvaluated;

/** Conditions that are not evaluated: 'meta length', '-m length --length 100:200'. */
type NotEvaluated = { readonly notEvaluated: readonly string[] };

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
  /** Whether it is for an address of the node. Absent: not known. */
  readonly isForNode?: boolean;
  /** What only tables like that of tke-eni ask; what is absent is not known. */
  readonly state?: PacketState;
  /** True: the route back to its source uses the link by which it arrives only for who asks with its mark. Absent: not known. */
  readonly isMarkedWayBack?: boolean;
};

/** State of a packet in the kernel. */
type PacketState = {
  readonly mark: number;
  /** Mark of its connection. */
  readonly ctMark: number;
  /** Direction within its connection: packets of the side that opened it, or answers. */
  readonly direction: 'original' | 'reply';
  /** Group of the link by which it arrives. */
  readonly iifgroup: number;
  /** Whether the route back to its source uses the link on which it arrived. */
  readonly isSourceRouted: boolean;
  /** Whether its destination is an address of the node. */
  readonly isLocal: boolean;
};

/** Action of a rule on matching packets. */
export type RuleVerdict =
  | { readonly kind: 'accept' | 'drop' | 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string }
  | Rewrite;

/** Change of a packet, which then continues with the next rule. */
export type Rewrite =
  /** @param `after` the mark afterwards; undefined where it cannot be known here */
  | { readonly kind: 'mark'; readonly after: (mark: number) => number | undefined }
  | { readonly kind: 'ttl'; readonly value: number }
  | { readonly kind: 'destination'; readonly value: string };

/** A rule as evaluated for one packet. */
export type RuleStep = { readonly match: MatchResult; readonly verdict: RuleVerdict };

/** Limit of nested jumps, as in the kernel. @see net/netfilter NFT_JUMP_STACK_SIZE */
const MAX_JUMPS = 16;

/** Result of a base chain for a packet, its policy included. */
export type ChainVerdict = {
  /** 'maybe': a rule may drop the packet, or its policy may. */
  readonly outcome: 'dropped' | 'maybe' | 'passes';
  /** Conditions that are not evaluated and that decide whether the packet is dropped; empty unless the outcome is 'maybe'. */
  readonly notEvaluated: readonly string[];
};

/**
 * Evaluates a base chain, and the chains that it jumps to, for a packet. Where the result depends on an address that the packet
 * leaves open, a rule that may drop it is ignored, and one that may accept it counts before a policy of drop: 'maybe'. Each chain is
 * evaluated once, however often it is jumped to.
 */
export function evaluateChain(
  stepsOf: (chain: string) => readonly RuleStep[],
  base: string,
  isDropPolicy: boolean,
): ChainVerdict {
  const known = new Map<string, Ends>();
  const follow = (target: string, depth: number): Ends => {
    const found = known.get(target);
    if (found !== undefined) return found;
    if (depth > MAX_JUMPS) return ANY_END;
    // A chain that leads to itself: the kernel refuses it, and nothing is certain.
    known.set(target, ANY_END);
    const ends = endsOf(stepsOf(target), (next) => follow(next, depth + 1));
    known.set(target, ends);
    return ends;
  };
  const { accepted, dropped, through } = follow(base, 0);
  const lost = isDropPolicy ? either(dropped, through) : dropped;
  const kept = isDropPolicy ? accepted : either(accepted, through);
  if (lost === undefined) return PASSES;
  if (kept === undefined || lost.isSure) return { outcome: 'dropped', notEvaluated: [] };
  const { notEvaluated } = lost;
  return notEvaluated.length > 0 || isDropPolicy ? { outcome: 'maybe', notEvaluated } : PASSES;
}

/** Verdict of a chain that lets the packet pass. */
export const PASSES: ChainVerdict = { outcome: 'passes', notEvaluated: [] };

/** How a packet comes to a rule, or to an end of a chain; undefined: not at all. */
type Way = {
  /** Whether each such packet takes it. */
  readonly isSure: boolean;
  /** Whether only packets with certain values of what is left open take it: nothing is reported of such a way. */
  readonly isNarrow: boolean;
  /** Conditions that are not evaluated on it; empty on a narrow way. */
  readonly notEvaluated: readonly string[];
};

/** Ends of a chain, and how a packet comes to each. */
type Ends = {
  readonly accepted: Way | undefined;
  readonly dropped: Way | undefined;
  readonly through: Way | undefined;
};

const SURE: Way = { isSure: true, isNarrow: false, notEvaluated: [] };
const NARROW: Way = { isSure: false, isNarrow: true, notEvaluated: [] };
const ANY_END: Ends = { accepted: NARROW, dropped: NARROW, through: NARROW };

function endsOf(steps: readonly RuleStep[], follow: (chain: string) => Ends): Ends {
  let accepted: Way | undefined;
  let dropped: Way | undefined;
  let through: Way | undefined;
  let here: Way | undefined = SURE;
  for (const { match, verdict } of steps) {
    if (here === undefined) break;
    if (match === 'no' || isRewrite(verdict)) continue;
    const taken = matching(here, match);
    const ends = endsAt(verdict, follow);
    accepted = either(accepted, both(taken, ends.accepted));
    dropped = either(dropped, both(taken, ends.dropped));
    const back = both(taken, ends.through);
    if (verdict.kind !== 'jump') through = either(through, back);
    else if (ends.through?.isSure === true) continue;
    here = either(notMatching(here, match), verdict.kind === 'jump' ? back : undefined);
  }
  through = either(through, here);
  // The only end that is left is the sure one, however many conditions lead to it.
  const ends = { accepted, dropped, through };
  const [only, ...others] = Object.entries(ends).filter(([, way]) => way !== undefined);
  return only !== undefined && others.length === 0 ? { ...ends, [only[0]]: SURE } : ends;
}

function endsAt(verdict: Exclude<RuleVerdict, Rewrite>, follow: (chain: string) => Ends): Ends {
  const none = { accepted: undefined, dropped: undefined, through: undefined };
  switch (verdict.kind) {
    case 'accept':
      return { ...none, accepted: SURE };
    case 'drop':
      return { ...none, dropped: SURE };
    case 'return':
      return { ...none, through: SURE };
    default:
      return follow(verdict.chain);
  }
}

/** Returns the way of the packets that match. */
function matching(way: Way, match: Exclude<MatchResult, 'no'>): Way {
  if (match === 'yes') return way;
  return match === 'maybe' ? NARROW : unevaluated(way, match);
}

/** Returns the way of the packets that do not match; of a condition on what is left open nearly all of them. */
function notMatching(way: Way, match: Exclude<MatchResult, 'no'>): Way | undefined {
  if (match === 'yes') return undefined;
  return match === 'maybe' ? { ...way, isSure: false } : unevaluated(way, match);
}

function unevaluated({ isNarrow, notEvaluated }: Way, more: NotEvaluated): Way {
  if (isNarrow) return NARROW;
  return { isSure: false, isNarrow, notEvaluated: [...new Set([...notEvaluated, ...more.notEvaluated])] };
}

/** Returns the way that consists of two, one after the other. */
function both(first: Way | undefined, then: Way | undefined): Way | undefined {
  if (first === undefined || then === undefined) return undefined;
  return then.isNarrow ? NARROW : { ...unevaluated(first, then), isSure: first.isSure && then.isSure };
}

/** Returns the way that is one of two. */
function either(one: Way | undefined, other: Way | undefined): Way | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    isSure: one.isSure || other.isSure,
    isNarrow: one.isNarrow && other.isNarrow,
    notEvaluated: [...new Set([...one.notEvaluated, ...other.notEvaluated])],
  };
}

function isRewrite(verdict: RuleVerdict): verdict is Rewrite {
  return verdict.kind === 'mark' || verdict.kind === 'ttl' || verdict.kind === 'destination';
}

/** A change that a packet meets; `isSure`: no rule that cannot be decided here stands before it or in it. */
export type MetRewrite = { readonly rewrite: Rewrite; readonly isSure: boolean };

/** Returns the changes that a packet meets in a chain and in the chains that it jumps to, each chain once. */
export function rewritesIn(stepsOf: (chain: string) => readonly RuleStep[], base: string): readonly MetRewrite[] {
  const found: MetRewrite[] = [];
  const entered = new Set<string>();
  /** Returns whether the packet leaves the chain without a decision. */
  const walk = (chain: string, isReached: boolean, depth: number): 'yes' | 'no' | 'maybe' => {
    if (depth > MAX_JUMPS || entered.has(chain)) return 'maybe';
    entered.add(chain);
    let passes: 'yes' | 'maybe' = 'yes';
    for (const { match, verdict } of stepsOf(chain)) {
      if (match === 'no') continue;
      const isMet = isReached && passes === 'yes' && match === 'yes';
      if (isRewrite(verdict)) {
        found.push({ rewrite: verdict, isSure: isMet });
        continue;
      }
      const isCall = verdict.kind === 'jump' || verdict.kind === 'goto';
      const returns = isCall ? walk(verdict.chain, isMet, depth + 1) : verdict.kind === 'return' ? 'yes' : 'no';
      if (verdict.kind === 'jump' && returns === 'yes') continue;
      if (match === 'yes' && (verdict.kind !== 'jump' || returns === 'no'))
        return passes === 'yes' || returns === 'no' ? returns : 'maybe';
      passes = 'maybe';
    }
    return passes;
  };
  walk(base, true, 0);
  return found;
}

/** Returns whether all conditions match. */
export function allMatch(answers: readonly MatchResult[]): MatchResult {
  if (answers.includes('no')) return 'no';
  return answers.includes('maybe') ? 'maybe' : (joined(answers) ?? 'yes');
}

/** Returns whether at least one condition matches. */
export function anyMatch(answers: readonly MatchResult[]): MatchResult {
  if (answers.includes('yes')) return 'yes';
  return joined(answers) ?? (answers.includes('maybe') ? 'maybe' : 'no');
}

function joined(answers: readonly MatchResult[]): NotEvaluated | undefined {
  const all = answers.flatMap((answer) => (typeof answer === 'string' ? [] : answer.notEvaluated));
  return all.length === 0 ? undefined : { notEvaluated: [...new Set(all)] };
}

/** Returns the opposite of a match. */
export function negated(answer: MatchResult): MatchResult {
  if (answer === 'yes') return 'no';
  return answer === 'no' ? 'yes' : answer;
}

/** Returns whether the interface matches, when it is one of several possible interfaces. */
export function matchLink(names: readonly string[], matches: (name: string) => boolean): MatchResult {
  const count = names.filter(matches).length;
  if (count === 0) return 'no';
  return count === names.length ? 'yes' : 'maybe';
}
