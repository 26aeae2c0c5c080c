import type { Clock } from '../../runtime/clock.ts';
import { CallGate, type GateSettings, type PacedRate, type Ticket } from './call-gate.ts';

/** How a scheduled call is to be counted: a refusal slows its API down. */
export type CallVerdict = {
  readonly isThrottled: boolean;
  /** Whether the refusal was for all APIs of the product together; false by default. */
  readonly isProductWide?: boolean;
  readonly afterMs: number;
};

const NOT_THROTTLED: CallVerdict = { isThrottled: false, afterMs: 0 };

type Start = { readonly resolve: () => void };

/** Starts calls when the gate lets them: the gate decides, this waits. */
export class CallScheduler {
  #clock: Clock;
  #gate: CallGate<Start>;
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #wake: AbortController | undefined;

  constructor(clock: Clock, settings: GateSettings) {
    this.#clock = clock;
    this.#gate = new CallGate(settings);
  }

  /** Calls a second that an API is allowed now; undefined when it was never called. */
  perSecond(product: string, action: string): number | undefined {
    return this.#gate.perSecond(product, action);
  }

  /** What each product and API that was ever called is allowed now. */
  rates(): Iterable<PacedRate> {
    return this.#gate.rates();
  }

  /** Number of calls that wait to start. */
  get waiting(): number {
    return this.#gate.waiting;
  }

  /**
   * Waits for its turn, then runs `call`. `judge` reads an error for what it says of the rate. Aborting while it waits
   * takes it out of line and rejects with the signal's reason; a running call is aborted by whoever made it.
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
      // A call that was granted in the meantime starts, and its own signal ends it: the gate counts it as under way.
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
        // An earlier wake-up has taken this one's place.
      },
    );
  }
}
