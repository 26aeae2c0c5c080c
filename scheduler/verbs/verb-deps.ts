import type { Clock } from '../../runtime/clock.ts';
import type { Moment } from '../index/reservation.ts';
import type { SchedulerIndex } from '../index/scheduler-index.ts';

/** What every verb answers from. */
export type VerbDeps = { readonly index: SchedulerIndex; readonly clock: Clock };

/** Looks at both clocks, and drops reservations that have run out. */
export function beginTurn({ index, clock }: VerbDeps): Moment {
  const now = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
  index.expire(now);
  return now;
}
