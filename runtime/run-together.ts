import type { Logger } from './log.ts';

/** One of several pieces of work; it ends, or rejects, when its signal aborts. */
type Work = (signal: AbortSignal) => Promise<unknown>;

/** What ends work that runs together. */
type TogetherOptions = {
  readonly signal: AbortSignal;
  /** Aborted by the first that fails; absent: of no interest to others. */
  readonly halt?: AbortController;
  readonly log: Pick<Logger, 'error'>;
};

/**
 * Runs several pieces of work, and waits until all have ended. The first that fails ends the others. The abort itself is no
 * failure; another error after it is logged, as it can end nothing any more.
 * @throws the first error before the abort, when all have ended
 */
export async function runTogether(works: readonly Work[], options: TogetherOptions): Promise<void> {
  const { signal, halt = new AbortController(), log } = options;
  const ended = AbortSignal.any([signal, halt.signal]);
  const faults: unknown[] = [];
  const run = async (work: Work): Promise<void> => {
    try {
      await work(ended);
    } catch (error) {
      const isAbort = error === ended.reason || (error instanceof Error && error.name === 'AbortError');
      if (ended.aborted && !isAbort) log.error('work failed while it was ending', { error });
      if (ended.aborted) return;
      faults.push(error);
      halt.abort(error);
    }
  };
  await Promise.all(works.map(run));
  if (faults.length > 0) throw faults[0];
}
