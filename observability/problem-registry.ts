/** One problem: its kind, and its subject. */
type Problem = { readonly kind: string; readonly name: string };

/** A series of the metric; `count` is 1 unless several were combined. */
type ProblemSample = Problem & { readonly count: number };

/** Limit of series in one scrape: an exhausted subnet is a problem of a thousand nodes. */
const MAX_SERIES = 200;
/** The name for all combined problems. */
const OTHERS = '(others)';
/** Begins the reporters of a leader. */
const TERM = 'term/';

/** Present problems, by reporter. */
export class ProblemRegistry {
  readonly #byReporter = new Map<string, readonly Problem[]>();

  /** Replaces all problems of a reporter; an empty list: it has none any more. */
  report(reporter: string, problems: readonly Problem[]): void {
    if (problems.length === 0) this.#byReporter.delete(reporter);
    else this.#byReporter.set(reporter, problems);
  }

  /** Reports problems that only a leader knows. */
  reportOfTerm(reporter: string, problems: readonly Problem[]): void {
    this.report(`${TERM}${reporter}`, problems);
  }

  /** Forgets the problems that only a leader knows: another replica leads now and reports them. */
  clearTerm(): void {
    for (const reporter of this.#byReporter.keys()) if (reporter.startsWith(TERM)) this.#byReporter.delete(reporter);
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

/** Names the reasons of problems of one subject as its problems. */
export function namedProblems(name: string, problems: readonly { readonly reason: string }[]): readonly Problem[] {
  return problems.map(({ reason }) => ({ kind: reason, name }));
}
