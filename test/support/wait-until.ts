import { setTimeout as sleep } from 'node:timers/promises';

/** Bounds of one wait. */
type WaitOptions = {
  /** What is awaited, for the error: «agent socket». */
  readonly what: string;
  /** Milliseconds until the wait fails; default 10,000. */
  readonly timeoutMs?: number;
  /** Milliseconds between two looks; default 10. */
  readonly everyMs?: number;
  /** Adds the scene to the error: the last lines of a log, for example. */
  readonly explain?: () => string;
};

/**
 * Looks again and again until `look` answers anything but undefined or false, and returns that.
 * @throws Error naming `what` after `timeoutMs`.
 */
export async function waitUntil<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  options: WaitOptions,
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? 10_000;
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
