import type { Clock } from '../../runtime/clock.ts';
import { type ClockTimer, timerOn } from '../../runtime/clock-timers.ts';
import { onAbort } from '../../runtime/on-abort.ts';
import { CallLimiter, type PacedRate, type PacingSettings, type Ticket } from './call-limiter.ts';

/** How a call counts for its rate: a refusal slows its API down. */
export type CallVerdict = {
  readonly isThrottled: boolean;
  /** Whether the refusal applied to all APIs of the product together; false by default. */
  readonly isProductWide?: boolean;
  readonly afterMs: number;
};

const NOT_THROTTLED: CallVerdict = { isThrottled: false, afterMs: 0 };

type Start = { readonly resolve: () => void };

/** Starts calls when the limiter grants them: the limiter decides, this class waits. */
export class CallScheduler {
  #clock: Clock;
  #limiter: CallLimiter<Start>;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #timer: ClockTimer | undefined;

  constructor(clock: Clock, settings: PacingSettings) {
    this.#clock = clock;
    this.#limiter = new CallLimiter(settings);
  }

  /** Returns the present rate of an API, calls a second; undefined when it was never called. */
  perSecond(product: string, action: string): number | undefined {
    return this.#limiter.perSecond(product, action);
  }

  /** Yields the present rate of each product and API that was ever called. */
  rates(): Iterable<PacedRate> {
    return this.#limiter.rates();
  }

  /** Number of calls that wait to start. */
  get waiting(): number {
    return this.#limiter.waiting;
  }

  /** Reports whether calls of an owner wait, or those of many others. */
  isBusyFor(owner: string): boolean {
    return this.#limiter.isBusyFor(owner);
  }

  /**
   * Waits for the limiter, then runs `call`. `classify` derives from an error how the call counts for the rate. An abort
   * during the wait removes the call from the queue and rejects with the signal's reason; a running call is aborted by
   * its caller.
   */
  async run<T>(
    ticket: Ticket,
    signal: AbortSignal,
    call: () => Promise<T>,
    classify: (error: unknown) => CallVerdict,
  ): Promise<T> {
    await this.#waitForStart(ticket, signal);
    const startedMs = this.#clock.monotonicMs();
    let verdict = NOT_THROTTLED;
    try {
      return await call();
    } catch (error) {
      verdict = classify(error);
      throw error;
    } finally {
      this.#limiter.report({ isProductWide: false, ...ticket, ...verdict, startedMs }, this.#clock.monotonicMs());
      this.#pump();
    }
  }

  async #waitForStart(ticket: Ticket, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const granted = Promise.withResolvers<void>();
    const queued = this.#limiter.enter(ticket, { resolve: granted.resolve }, this.#clock.monotonicMs());
    const leave = onAbort(signal, () => {
      // A call that was granted meanwhile starts, and its own signal ends it: the limiter counts it as running.
      if (this.#limiter.leave(queued)) granted.reject(signal.reason);
    });
    this.#pump();
    try {
      await granted.promise;
    } finally {
      leave();
    }
  }

  #pump(): void {
    const { items, nextCheckMs } = this.#limiter.grant(this.#clock.monotonicMs());
    for (const start of items) start.resolve();
    if (nextCheckMs !== undefined && nextCheckMs < this.#timerAtMs) this.#setTimer(nextCheckMs);
  }

  #setTimer(atMs: number): void {
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    const fire = (): void => {
      this.#timerAtMs = Number.POSITIVE_INFINITY;
      this.#pump();
    };
    this.#timer = timerOn(this.#clock, fire, Math.max(0, atMs - this.#clock.monotonicMs()));
  }
}
