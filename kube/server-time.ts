import type { Clock } from '../runtime/clock.ts';

/** The wall clock of the API server, as its answers say it; good to some seconds. */
export class ServerTime {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #last: { readonly ms: number; readonly atMs: number } | undefined;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Takes note of the header `Date` of an answer; one that is missing or cannot be read says nothing. */
  note(header: string | undefined): void {
    const ms = header === undefined ? Number.NaN : Date.parse(header);
    if (Number.isFinite(ms)) this.#last = { ms, atMs: this.#clock.monotonicMs() };
  }

  /** Returns the time there now, milliseconds since the epoch; undefined before the first answer. */
  read(): number | undefined {
    return this.#last && this.#last.ms + this.#clock.monotonicMs() - this.#last.atMs;
  }
}
