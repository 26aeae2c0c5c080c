import { ApiError } from './api-error.ts';
import type { ModelReservedIp } from './types.ts';

/** How far back a description can answer. */
const PAST_MS = 60_000;

/** The reserved addresses of a VPC, and those that were released a short time ago. */
export class ReservedIpBook {
  readonly reservations = new Map<string, ModelReservedIp>();
  #byIp = new Map<string, ModelReservedIp>();
  #gone: { readonly one: ModelReservedIp; readonly atMs: number }[] = [];

  add(one: ModelReservedIp): ModelReservedIp {
    this.reservations.set(one.reservationId, one);
    this.#byIp.set(one.ip, one);
    return one;
  }

  remove(one: ModelReservedIp, atMs: number): void {
    if (!this.reservations.delete(one.reservationId)) return;
    this.#byIp.delete(one.ip);
    this.#gone = this.#gone.filter((other) => other.atMs >= atMs - PAST_MS);
    this.#gone.push({ one, atMs });
  }

  of(ip: string): ModelReservedIp | undefined {
    return this.#byIp.get(ip);
  }

  /** @throws ApiError ResourceNotFound */
  get(reservationId: string): ModelReservedIp {
    const one = this.reservations.get(reservationId);
    if (one === undefined) throw new ApiError('ResourceNotFound', `The resource ${reservationId} does not exist.`);
    return one;
  }

  /** Every reservation as it was at some moment of the last minute. */
  asOf(atMs: number): ReadonlyMap<string, ModelReservedIp> {
    const gone = this.#gone.filter((one) => one.atMs > atMs).map(({ one }) => one);
    const then = [...gone, ...this.reservations.values()].filter(({ createdAtMs }) => createdAtMs <= atMs);
    return new Map(then.map((one) => [one.reservationId, one]));
  }
}
