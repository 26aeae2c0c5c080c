/** One thing that is wrong: of which kind, and with what. */
export type Problem = { readonly kind: string; readonly name: string };

/** A line of the metric; `count` is 1 but where several were put together. */
export type ProblemSample = Problem & { readonly count: number };

/** Series that one scrape may have: a subnet that ran out is wrong with a thousand nodes. */
const MOST_SERIES = 200;
/** The name that stands for all that are not named. */
const OTHERS = '(others)';

/** What is wrong now, by whoever said so. */
export class ProblemBook {
  readonly #byReporter = new Map<string, readonly Problem[]>();

  /** Replaces all that a reporter said before; an empty list: nothing is wrong any more. */
  report(reporter: string, problems: readonly Problem[]): void {
    if (problems.length === 0) this.#byReporter.delete(reporter);
    else this.#byReporter.set(reporter, problems);
  }

  /** Forgets what reporters of a kind said: another leads now, and says it. */
  forgetAll(prefix: string): void {
    for (const reporter of this.#byReporter.keys()) if (reporter.startsWith(prefix)) this.#byReporter.delete(reporter);
  }

  /** Lists each problem once; beyond the most series those of a kind are put together. */
  samples(): readonly ProblemSample[] {
    const named = new Map<string, ProblemSample>();
    const others = new Map<string, ProblemSample>();
    for (const { kind, name } of [...this.#byReporter.values()].flat()) {
      const key = `${kind}/${name}`;
      if (named.has(key)) continue;
      if (named.size < MOST_SERIES) named.set(key, { kind, name, count: 1 });
      else others.set(kind, { kind, name: OTHERS, count: (others.get(kind)?.count ?? 0) + 1 });
    }
    return [...named.values(), ...others.values()];
  }
}
