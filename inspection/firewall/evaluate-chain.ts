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
    if (match === 'no' || isRewrite(verdict)) continue;
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

function isRewrite(verdict: RuleVerdict): verdict is Rewrite {
  return verdict.kind === 'mark' || verdict.kind === 'ttl' || verdict.kind === 'destination';
}

type Decision = Exclude<RuleVerdict, Rewrite>;

function outcomeOf(verdict: Decision, follow: (chain: string) => ChainOutcome): ChainOutcome {
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

/** A change that a packet meets; `isSure`: no rule that cannot be decided here stands before it or in it. */
export type MetRewrite = { readonly rewrite: Rewrite; readonly isSure: boolean };

/** Returns the changes that a packet meets in a chain and in the chains that it jumps to, each chain once. */
export function rewritesIn(stepsOf: (chain: string) => readonly RuleStep[], base: string): readonly MetRewrite[] {
  const found: MetRewrite[] = [];
  const entered = new Set<string>();
  /** Returns whether the packet leaves the chain without a decision. */
  const walk = (chain: string, isReached: boolean, depth: number): MatchResult => {
    if (depth > MAX_JUMPS || entered.has(chain)) return 'maybe';
    entered.add(chain);
    let passes: MatchResult = 'yes';
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
      if (match === 'yes' && (verdict.kind !== 'jump' || returns === 'no')) return allMatch([passes, returns]);
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
