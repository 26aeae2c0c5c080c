/** Work that is not awaited has failed in a way that it does not handle. Ends the process. */
class BackgroundError extends Error {
  readonly code = 'BACKGROUND';

  constructor(what: string, cause: unknown) {
    super(`${what} ended by an error that it does not handle; the process ends and is started again`, { cause });
    this.name = 'BackgroundError';
  }
}

/**
 * Owns work that is not awaited. The work handles what it expects, and tries again. Any other error ends the process,
 * with `what` in its text: a daemon that goes on without one of its parts would look healthy. The state of a node
 * survives the end of each process.
 */
export function runInBackground(what: string, work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    // Thrown outside any promise, so that no caller can catch it.
    setImmediate(() => {
      throw new BackgroundError(what, error);
    });
  });
}
