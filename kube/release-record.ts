import type { Clock } from '../runtime/clock.ts';
import { isRecord } from '../runtime/decode.ts';
import { StampAges } from '../runtime/stamp-ages.ts';

const HOUR_MS = 3_600_000;
/** A release counts from the end of its slot: up to so much longer than an hour. */
const SLOT_MS = 300_000;
/** Those of an hour, the one that goes on, and one by a clock that is ahead. */
const MAX_SLOTS = 14;
const MAX_COUNT = 1_000_000;
const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/**
 * How many releases began within the last hour, in slots of five minutes: what one leader leaves to the next. As text it
 * is JSON from the end of a slot, RFC 3339, to a number: `{"2026-11-26T11:05:00Z":3}`.
 */
export class ReleaseRecord {
  readonly #clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly #ages: StampAges;
  /** By the end of the slot. */
  readonly #counts = new Map<string, number>();

  constructor(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>) {
    this.#clock = clock;
    this.#ages = new StampAges(clock);
  }

  /** Takes over a text, where it has more than is known here. What cannot be read of it is left out. */
  take(text: string | undefined): void {
    for (const [stamp, count] of readSlots(text)) {
      this.#ages.ageMs(stamp, stamp);
      this.#counts.set(stamp, Math.max(count, this.#counts.get(stamp) ?? 0));
    }
  }

  /** Counts a release that begins now. */
  add(): void {
    const endMs = Math.ceil(this.#clock.nowMs() / SLOT_MS) * SLOT_MS;
    const stamp = new Date(endMs).toISOString().replace(/\.\d+Z$/, 'Z');
    this.#ages.ageMs(stamp, stamp);
    this.#counts.set(stamp, (this.#counts.get(stamp) ?? 0) + 1);
  }

  /** Releases within the last hour. */
  get count(): number {
    this.#forgetOld();
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Renders those of the last hour. */
  render(): string {
    this.#forgetOld();
    return JSON.stringify(Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1))));
  }

  #forgetOld(): void {
    for (const stamp of this.#counts.keys()) {
      if (this.#ages.ageMs(stamp, stamp) < HOUR_MS) continue;
      this.#ages.ageMs(stamp, undefined);
      this.#counts.delete(stamp);
    }
  }
}

function readSlots(text = ''): readonly (readonly [string, number])[] {
  try {
    const slots: unknown = JSON.parse(text);
    if (!isRecord(slots)) return [];
    const isCount = (count: unknown): count is number =>
      typeof count === 'number' && Number.isInteger(count) && count > 0 && count <= MAX_COUNT;
    return Object.entries(slots)
      .flatMap(([stamp, count]) => (STAMP.test(stamp) && isCount(count) ? [[stamp, count] as const] : []))
      .slice(-MAX_SLOTS);
  } catch {
    // Nothing, or edited by hand.
    return [];
  }
}
