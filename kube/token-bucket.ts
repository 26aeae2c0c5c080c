import { runInBackground } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import { onAbort } from '../runtime/on-abort.ts';
import { TurnQueue } from '../runtime/turn-queue.ts';

type Waiter = { readonly enter: () => void };

/**
 * A rate limit: `qps` calls per second in the long run and up to `burst` at once. Lanes of callers take turns; within a lane
 * it is in order of arrival. A caller that gives up while it waits uses no token.
 */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #qps: number;
  readonly #burst: number;
  readonly #waiters = new TurnQueue<Waiter>();
  #tokens: number;
  #filledMs: number;
  #isPumping = false;

  /** `qps` above 0; `burst` at least 1. The bucket is full at the start. */
  constructor(clock: Clock, qps: number, burst: number) {
    this.#clock = clock;
    this.#qps = Math.max(qps, 0.001);
    this.#burst = Math.max(1, burst);
    this.#tokens = this.#burst;
    this.#filledMs = clock.monotonicMs();
  }

  /** Waits for a token, in the turn of a lane. Rejects with the signal's reason when aborted before. */
  async take(signal?: AbortSignal, lane = ''): Promise<void> {
    signal?.throwIfAborted();
    this.#fill();
    if (this.#waiters.size === 0 && this.#tokens >= 1) {
      this.#tokens -= 1;
      return;
    }
    const granted = Promise.withResolvers<void>();
    const waiter = { enter: granted.resolve };
    const leave =
      signal &&
      onAbort(signal, () => {
        this.#waiters.delete(waiter);
        granted.reject(signal.reason);
      });
    this.#waiters.add(waiter, lane);
    if (!this.#isPumping) runInBackground('handing out calls', this.#pump());
    try {
      await granted.promise;
    } finally {
      leave?.();
    }
  }

  /** Hands out tokens as long as callers wait. */
  async #pump(): Promise<void> {
    this.#isPumping = true;
    while (this.#waiters.size > 0) {
      this.#fill();
      if (this.#tokens < 1) {
        await this.#clock.sleep(Math.ceil(((1 - this.#tokens) * 1000) / this.#qps));
        continue;
      }
      this.#tokens -= 1;
      this.#waiters.take()?.enter();
    }
    this.#isPumping = false;
  }

  #fill(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#filledMs) * this.#qps) / 1000);
    this.#filledMs = nowMs;
  }
}
