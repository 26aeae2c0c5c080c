import type { Clock } from '../../runtime/clock.ts';
import type { Moment } from '../index/reservation.ts';
import type { SchedulerIndex } from '../index/scheduler-index.ts';

/** Dependencies of every verb. */
export type VerbDeps = { readonly index: SchedulerIndex; readonly clock: Clock };

/** Removes expired reservations and returns the present moment on both clocks. */
export function expireReservations({ index, clock }: VerbDeps): Moment {
  const now = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
  index.expire(now);
  return now;
}
