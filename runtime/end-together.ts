import type { Logger } from './log.ts';

/** The end of several pieces of work. */
type CommonEnd = {
  /** Ends the work; follows `halt`. */
  readonly signal: AbortSignal;
  readonly halt: AbortController;
  readonly log: Pick<Logger, 'error'>;
};

/**
 * Waits until all pieces of work have ended. The first that fails ends the others with it, by `halt`. The abort itself is no
 * failure; another error after it is logged, as it can end nothing any more. Every rejection is handled from the call on.
 * @throws the first error before the abort, when all have ended
 */
export async function endTogether(works: readonly Promise<unknown>[], { signal, halt, log }: CommonEnd): Promise<void> {
  const faults: unknown[] = [];
  const handle = (error: unknown): void => {
    if (!signal.aborted) {
      faults.push(error);
      halt.abort(error);
      return;
    }
    const isAbort = error === signal.reason || (error instanceof Error && error.name === 'AbortError');
    if (!isAbort) log.error('work failed while it was ending', { error });
  };
  await Promise.all(works.map((work) => work.catch(handle)));
  if (faults.length > 0) throw faults[0];
}
