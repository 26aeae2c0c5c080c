import type { PodDemand } from './pod-demand.ts';

/** A place that is promised to a Pod before it is bound. */
export type Reservation = {
  readonly nodeName: string;
  readonly demand: Pick<PodDemand, 'key' | 'uid' | 'isStatic' | 'routeIps' | 'directEnis' | 'eips'>;
  /** Monotonic milliseconds after which it counts no more. */
  readonly expiresMs: number;
};

/** One moment on both clocks: reservations in objects carry wall time, and durations are counted on the other. */
export type Moment = { readonly wallMs: number; readonly monotonicMs: number };

/**
 * Tells until when a reservation holds that was written at `sinceMs` of the wall clock. One from the future, of a clock
 * that runs ahead, holds for the whole time from now; one without a time that can be read has run out. Pure.
 */
export function expiryOf(sinceMs: number, ttlMs: number, now: Moment): number {
  if (Number.isNaN(sinceMs)) return Number.NEGATIVE_INFINITY;
  const leftMs = Math.min(ttlMs, sinceMs + ttlMs - now.wallMs);
  return now.monotonicMs + leftMs;
}
