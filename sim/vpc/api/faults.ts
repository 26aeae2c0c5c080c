import { seededRandom } from '../../support/seeded-random.ts';

/** What may go wrong with one request. */
export type Fault =
  /** Answers this error instead; `after` the effect, or before it. */
  | { readonly kind: 'error'; readonly code: string; readonly after?: boolean }
  /** A gateway answers with this status; `after` the effect, or before it. */
  | { readonly kind: 'http'; readonly status: number; readonly after?: boolean }
  /** No answer ever comes; `after` the effect, or before it. */
  | { readonly kind: 'hang'; readonly after?: boolean }
  /** The connection breaks; `after` the effect, or before it. */
  | { readonly kind: 'reset'; readonly after?: boolean }
  | { readonly kind: 'latency'; readonly ms: number }
  /** A describe answers as of so long ago. */
  | { readonly kind: 'stale'; readonly ms: number }
  /** A describe answers that there is nothing, as to a key of another account. */
  | { readonly kind: 'empty' }
  /** A describe answers with half of what its total says. */
  | { readonly kind: 'partial' }
  /** A call about many listeners is refused for one of them: its answer says so, and is no error. */
  | { readonly kind: 'refuse-one' }
  /** The task that this request begins fails, is never heard of, or takes longer. */
  | { readonly kind: 'task'; readonly fate: 'fail' | 'vanish' }
  | { readonly kind: 'slow-task'; readonly ms: number };

/** One line of a fault script. */
export type FaultRule = {
  readonly fault: Fault;
  /** APIs it is for; absent: all. `Describe*` stands for all that begin so. */
  readonly actions?: readonly string[];
  /** Text in the parameters of the requests it is for, which are JSON; absent: all. */
  readonly within?: string;
  /** Share of the requests, 0 to 1; default 1. */
  readonly probability?: number;
  /** Requests at most; default no limit. */
  readonly times?: number;
  /** From and until, milliseconds on the host's clock since it began. */
  readonly fromMs?: number;
  readonly untilMs?: number;
};

type ActiveRule = { readonly rule: FaultRule; left: number };

/** A seeded script of faults, and switches to change it while it runs: the same seed and requests, the same faults. */
export class FaultScript {
  readonly seed: number;
  #random: () => number;
  #rules: ActiveRule[];

  constructor(seed: number, rules: readonly FaultRule[] = []) {
    this.seed = seed;
    this.#random = seededRandom(seed);
    this.#rules = rules.map(activate);
  }

  /** Adds a line; the returned function takes it out again. */
  add(rule: FaultRule): () => void {
    const active = activate(rule);
    this.#rules.push(active);
    return () => {
      this.#rules = this.#rules.filter((candidate) => candidate !== active);
    };
  }

  /** Takes every line out. */
  clear(): void {
    this.#rules = [];
  }

  /** The faults of one request at `elapsedMs`. */
  draw(action: string, elapsedMs: number, params: Readonly<Record<string, unknown>> = {}): readonly Fault[] {
    return this.#rules.flatMap((active) => {
      const { rule } = active;
      if (active.left <= 0 || elapsedMs < (rule.fromMs ?? 0) || elapsedMs >= (rule.untilMs ?? Infinity)) return [];
      if (!(rule.actions ?? ['*']).some((pattern) => fits(pattern, action))) return [];
      if (rule.within !== undefined && !JSON.stringify(params).includes(rule.within)) return [];
      if (this.#random() >= (rule.probability ?? 1)) return [];
      active.left -= 1;
      return [rule.fault];
    });
  }
}

function activate(rule: FaultRule): ActiveRule {
  return { rule, left: rule.times ?? Number.POSITIVE_INFINITY };
}

function fits(pattern: string, action: string): boolean {
  return pattern.endsWith('*') ? action.startsWith(pattern.slice(0, -1)) : action === pattern;
}
