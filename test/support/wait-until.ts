import { setTimeout as sleep } from 'node:timers/promises';

/** Bounds of one wait. */
type WaitOptions = {
  /** What is awaited, for the error: «agent socket». */
  readonly what: string;
  /** Milliseconds until the wait fails; default 30,000: a machine that is busy is no fault, and who waits in vain fails anyway. */
  readonly timeoutMs?: number;
  /** Milliseconds between two looks; default 10. */
  readonly everyMs?: number;
  /** Adds the scene to the error: the last lines of a log, for example. */
  readonly explain?: () => string;
};

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Looks again and again until `look` answers anything but undefined or false, and returns that.
 * @throws Error naming `what` after `timeoutMs`.
 */
export async function waitUntil<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  options: WaitOptions,
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) {
      throw new Error(`${options.what}: not seen within ${timeoutMs} ms. ${options.explain?.() ?? ''}`.trimEnd());
    }
    await sleep(options.everyMs ?? 10);
  }
}
