/** Work that is not awaited has failed in a way that it does not handle. */
class BackgroundError extends Error {
  readonly code = 'BACKGROUND';

  constructor(what: string, cause: unknown) {
    super(`${what} ended by an error that it does not handle; the process ends and is started again`, { cause });
    this.name = 'BackgroundError';
  }
}

/**
 * Owns work that is not awaited; `what` names it. The work handles what it expects, and tries again. Any other error ends the
 * program: a daemon that goes on without one of its parts would look healthy. The state of a node survives each end.
 */
export type Background = (what: string, work: Promise<unknown>) => void;

/** Owns the work of a program that `failed` ends. */
export function backgroundOf(failed: (error: Error) => void): Background {
  return (what, work) => {
    work.catch((error: unknown) => failed(new BackgroundError(what, error)));
  };
}

/** Ends the process by an error. */
export function endByError(error: Error): void {
  // Thrown outside any promise, so that no caller can catch it.
  setImmediate(() => {
    throw error;
  });
}

/** Owns work of the process. */
export const runInBackground: Background = backgroundOf(endByError);
