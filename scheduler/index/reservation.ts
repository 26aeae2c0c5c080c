import type { PodRequest } from './pod-request.ts';

/** Capacity of a node that is reserved for a Pod before it is bound. */
export type Reservation = {
  readonly nodeName: string;
  readonly demand: Pick<PodRequest, 'key' | 'uid' | 'isStatic' | 'routeIps' | 'exclusiveEnis' | 'eips'>;
  /** Monotonic milliseconds at which it expires. */
  readonly expiresMs: number;
};

/** One moment on both clocks: reservations in objects carry wall time, durations are counted on the monotonic clock. */
export type Moment = { readonly wallMs: number; readonly monotonicMs: number };

/** The age of a reservation that an object carries (`StampAges`), and the moment at which it is so old. */
export type ReservationAge = { readonly ageMs: number; readonly monotonicMs: number };

/** Computes when a reservation of this age expires; it lasts `ttlMs`. A time in the future has the age 0. */
export function expiryOf({ ageMs, monotonicMs }: ReservationAge, ttlMs: number): number {
  return monotonicMs + ttlMs - ageMs;
}
