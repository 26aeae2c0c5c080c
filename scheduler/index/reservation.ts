import type { PodRequest } from './pod-request.ts';

/** Capacity of a node that is reserved for a Pod before it is bound. */
export type Reservation = {
  readonly nodeName: string;
  readonly demand: Pick<PodRequest, 'key' | 'uid' | 'isStatic' | 'routeIps' | 'directEnis' | 'eips'>;
  /** Monotonic milliseconds at which it expires. */
  readonly expiresMs: number;
};

/** One moment on both clocks: reservations in objects carry wall time, durations are counted on the monotonic clock. */
export type Moment = { readonly wallMs: number; readonly monotonicMs: number };

/**
 * Computes when a reservation expires that was written at `sinceMs` of the wall clock. A time in the future comes from
 * a clock that runs ahead; such a reservation lasts the whole `ttlMs` from now. One without a readable time has
 * expired.
 */
export function expiryOf(sinceMs: number, ttlMs: number, now: Moment): number {
  if (Number.isNaN(sinceMs)) return Number.NEGATIVE_INFINITY;
  const leftMs = Math.min(ttlMs, sinceMs + ttlMs - now.wallMs);
  return now.monotonicMs + leftMs;
}
