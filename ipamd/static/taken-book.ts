import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { TakenIp } from './claim-view.ts';

/** Who has an address, by the cloud's word, for people; undefined when the cloud does not say. */
export type AskHolder = (ips: readonly string[], signal: AbortSignal) => Promise<string | undefined>;

type Entry = {
  readonly ips: readonly string[];
  readonly words: string;
  readonly untilMs: number;
  readonly tries: number;
  readonly holder?: string;
};

/** An address that somebody else has is asked for again after this, and later after more. */
const BACKOFF: BackoffSettings = { firstMs: 15_000, maxMs: 600_000, factor: 2, jitter: 0.2 };

/** Knows the claims whose address the cloud refused because somebody else has it, and when it is tried again. */
export class TakenBook {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #ask: AskHolder;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock, random: () => number, ask: AskHolder) {
    this.#clock = clock;
    this.#random = random;
    this.#ask = ask;
  }

  /** How many addresses are taken now. */
  get size(): number {
    return this.#entries.size;
  }

  /** Notes that the cloud refused a claim's address, in its own words; `holder`: who has it, where that is known. */
  refuse(key: string, ips: readonly string[], words: string, holder?: string): void {
    const tries = (this.#entries.get(key)?.tries ?? 0) + 1;
    const untilMs = this.#clock.nowMs() + backoffMs(BACKOFF, tries, this.#random());
    this.#entries.set(key, { ips, words, untilMs, tries, ...(holder === undefined ? {} : { holder }) });
  }

  /** Notes that the claim has its address, or needs none. */
  forget(key: string): void {
    this.#entries.delete(key);
  }

  /** Asks who has the address, once for each refusal. Never throws but when aborted. */
  async look(key: string, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.holder !== undefined) return;
    const holder = await this.#ask(entry.ips, signal).catch(() => undefined);
    signal.throwIfAborted();
    if (this.#entries.get(key) === entry) this.#entries.set(key, { ...entry, holder: holder ?? '' });
  }

  /** Undefined when nobody else has it, as far as is known. */
  of(key: string): TakenIp | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const { words, untilMs, holder = '' } = entry;
    return { message: holder === '' ? words : `${holder}: ${words}`, untilMs };
  }
}
