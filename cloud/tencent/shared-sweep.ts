import type { Clock } from '../../runtime/clock.ts';
import type { CallContext } from '../cloud.ts';
import { DEFAULT_TIMEOUT_MS, deadlineError } from './caller.ts';
import { SharedRun } from './shared-run.ts';
import { withTimeout } from './with-timeout.ts';

type SweepSlot<T> = { running: SharedRun<T> | undefined; next: SharedRun<T> | undefined };

/**
 * Shares one sweep among all callers that need the same: at most one runs and one waits per key. A caller that comes
 * while one runs gets the next one, because the running sweep may have read its page before the change that the caller
 * looks for.
 */
export class SharedSweep<T> {
  #clock: Clock;
  #slots = new Map<string, SweepSlot<T>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves with a sweep that began after this call. `sweep` runs with the priority of its first caller, but with a
   * signal and a deadline of its own: the short timeout of one caller does not end it for the others.
   */
  async join(key: string, context: CallContext, sweep: (context: CallContext) => Promise<T>): Promise<T> {
    context.signal.throwIfAborted();
    const slot = this.#slots.get(key) ?? { running: undefined, next: undefined };
    this.#slots.set(key, slot);
    const next = slot.next === undefined || slot.next.isAborted ? this.#queue(key, slot, context, sweep) : slot.next;
    slot.next = next;
    const timeoutMs = context.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const reason = (): Error => deadlineError('Describe', timeoutMs);
    return await withTimeout(this.#clock, timeoutMs, context.signal, reason, (signal) => next.join(signal));
  }

  #queue(
    key: string,
    slot: SweepSlot<T>,
    context: CallContext,
    sweep: (context: CallContext) => Promise<T>,
  ): SharedRun<T> {
    const run: SharedRun<T> = new SharedRun(async (signal) => {
      await slot.running?.settled();
      slot.running = run;
      // If all callers left before this run began, another run has taken its place.
      if (slot.next === run) slot.next = undefined;
      try {
        signal.throwIfAborted();
        return await sweep({ ...context, signal, timeoutMs: DEFAULT_TIMEOUT_MS });
      } finally {
        slot.running = undefined;
        if (slot.next === undefined) this.#slots.delete(key);
      }
    });
    return run;
  }
}
