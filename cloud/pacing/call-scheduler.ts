import type { Clock } from '../../runtime/clock.ts';
import { CallGate, type GateSettings, type PacedRate, type Ticket } from './call-gate.ts';

/** How a call counts for its rate: a refusal slows its API down. */
export type CallVerdict = {
  readonly isThrottled: boolean;
  /** Whether the refusal applied to all APIs of the product together; false by default. */
  readonly isProductWide?: boolean;
  readonly afterMs: number;
};

const NOT_THROTTLED: CallVerdict = { isThrottled: false, afterMs: 0 };

type Start = { readonly resolve: () => void };

/** Starts calls when the gate grants them: the gate decides, this class waits. */
export class CallScheduler {
  #clock: Clock;
  #gate: CallGate<Start>;
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #wake: AbortController | undefined;

  constructor(clock: Clock, settings: GateSettings) {
    this.#clock = clock;
    this.#gate = new CallGate(settings);
  }

  /** Returns the present rate of an API, calls a second; undefined when it was never called. */
  perSecond(product: string, action: string): number | undefined {
    return this.#gate.perSecond(product, action);
  }

  /** Yields the present rate of each product and API that was ever called. */
  rates(): Iterable<PacedRate> {
    return this.#gate.rates();
  }

  /** Number of calls that wait to start. */
  get waiting(): number {
    return this.#gate.waiting;
  }

  /**
   * Waits for the gate, then runs `call`. `judge` derives from an error how the call counts for the rate. An abort
   * during the wait removes the call from the queue and rejects with the signal's reason; a running call is aborted by
   * its caller.
   */
  async run<T>(
    ticket: Ticket,
    signal: AbortSignal,
    call: () => Promise<T>,
    judge: (error: unknown) => CallVerdict,
  ): Promise<T> {
    await this.#turn(ticket, signal);
    const startedMs = this.#clock.monotonicMs();
    let verdict = NOT_THROTTLED;
    try {
      return await call();
    } catch (error) {
      verdict = judge(error);
      throw error;
    } finally {
      this.#gate.report({ isProductWide: false, ...ticket, ...verdict, startedMs }, this.#clock.monotonicMs());
      this.#pump();
    }
  }

  async #turn(ticket: Ticket, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const turn = Promise.withResolvers<void>();
    const entered = this.#gate.enter(ticket, { resolve: turn.resolve }, this.#clock.monotonicMs());
    const onAbort = (): void => {
      // A call that was granted meanwhile starts, and its own signal ends it: the gate counts it as running.
      if (this.#gate.leave(entered)) turn.reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    this.#pump();
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #pump(): void {
    const { items, askAgainMs } = this.#gate.grant(this.#clock.monotonicMs());
    for (const start of items) start.resolve();
    if (askAgainMs !== undefined && askAgainMs < this.#wakeAtMs) this.#wakeAt(askAgainMs);
  }

  #wakeAt(atMs: number): void {
    this.#wake?.abort();
    const wake = new AbortController();
    this.#wake = wake;
    this.#wakeAtMs = atMs;
    this.#clock.sleep(Math.max(0, atMs - this.#clock.monotonicMs()), wake.signal).then(
      () => {
        this.#wakeAtMs = Number.POSITIVE_INFINITY;
        this.#pump();
      },
      () => {
        // An earlier timer has replaced this one.
      },
    );
  }
}
