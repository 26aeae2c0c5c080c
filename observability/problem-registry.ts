/** One problem: its kind, and its subject. */
type Problem = { readonly kind: string; readonly name: string };

/** A series of the metric; `count` is 1 unless several were combined. */
type ProblemSample = Problem & { readonly count: number };

/** Limit of series in one scrape: an exhausted subnet is a problem of a thousand nodes. */
const MAX_SERIES = 200;
/** The name for all combined problems. */
const OTHERS = '(others)';

/** Present problems, by reporter. */
export class ProblemRegistry {
  readonly #byReporter = new Map<string, readonly Problem[]>();

  /** Replaces all problems of a reporter; an empty list: it has none any more. */
  report(reporter: string, problems: readonly Problem[]): void {
    if (problems.length === 0) this.#byReporter.delete(reporter);
    else this.#byReporter.set(reporter, problems);
  }

  /** Forgets the problems of all reporters with a prefix: another replica leads now and reports them. */
  removeAll(prefix: string): void {
    for (const reporter of this.#byReporter.keys()) if (reporter.startsWith(prefix)) this.#byReporter.delete(reporter);
  }

  /** Lists each problem once; beyond the limit those of a kind are combined. */
  samples(): readonly ProblemSample[] {
    const named = new Map<string, ProblemSample>();
    const others = new Map<string, ProblemSample>();
    for (const { kind, name } of [...this.#byReporter.values()].flat()) {
      const key = `${kind}/${name}`;
      if (named.has(key)) continue;
      if (named.size < MAX_SERIES) named.set(key, { kind, name, count: 1 });
      else others.set(kind, { kind, name: OTHERS, count: (others.get(kind)?.count ?? 0) + 1 });
    }
    return [...named.values(), ...others.values()];
  }
}
