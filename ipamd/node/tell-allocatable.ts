import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { type Allocatable, isWorthTelling, withAllocatable } from '../nec/decide-allocatable.ts';
import { isSameData } from '../nec/same-data.ts';

/** The last write that was made only to publish how many addresses a node can have. */
export type AllocatableTold = {
  readonly atMs: number;
  readonly isMore: boolean;
  readonly most: number;
  /**
   * How many times in a row a lower number soon followed a higher one, or was written again: the number does not stay,
   * or the definition lacks the field.
   */
  readonly turns: number;
};

/** What is written of the number now, and when to check again. */
export type AllocatableTelling = {
  readonly status: NodeEniConfigStatus;
  /** Present where the write is made for the number alone: to be remembered once it is written. */
  readonly told?: AllocatableTold;
  /** Milliseconds until the number may be written, or is to be checked again. */
  readonly waitMs?: number;
};

/** Shortest time between two writes of a node that are made for the number alone. */
const PAUSE_MS = 30_000;
/**
 * A lower number is written later each time that it follows a higher one: around an exhausted subnet it goes up and
 * down all day.
 */
const LONGEST_PAUSE_MS = 600_000;
/** After so long without such a write the count of alternations begins anew. */
const CALM_MS = 1_200_000;
/** The end of a refusal enqueues no node. */
const REFUSED_LOOK_MS = 60_000;

/**
 * Decides whether the number of allocatable addresses is written now. It goes into every write that is made anyway. A
 * write for the number alone is made where that is worth it, and not too often: many nodes share a subnet, and each
 * address of it changes the number of all of them. `before` is the object's status, `next` what is to be written.
 */
export function tellAllocatable(
  before: NodeEniConfigStatus,
  next: NodeEniConfigStatus,
  now: Allocatable | undefined,
  last: AllocatableTold | undefined,
  nowMs: number,
): AllocatableTelling {
  if (now === undefined) return { status: next };
  const lookMs = now.isRefused && now.most < now.limit ? { waitMs: REFUSED_LOOK_MS } : {};
  const status = withAllocatable(next, now);
  if (!isSameData(next, before)) return { status, ...lookMs };
  const held = before.allocatableRouteENIIPs;
  if (!isWorthTelling(now, held)) return { status: next, ...lookMs };
  const told = tellingOf(now.most, now.most > (held ?? now.limit), last, nowMs);
  const pauseMs = last === undefined ? 0 : last.atMs + pauseOf(told) - nowMs;
  return pauseMs > 0 ? { status: next, waitMs: pauseMs } : { status, told };
}

function tellingOf(most: number, isMore: boolean, last: AllocatableTold | undefined, atMs: number): AllocatableTold {
  const isCalm = last === undefined || atMs - last.atMs > CALM_MS;
  if (isCalm) return { atMs, isMore, most, turns: 0 };
  const isAgain = !isMore && (last.isMore || most >= last.most);
  return { atMs, isMore, most, turns: last.turns + (isAgain ? 1 : 0) };
}

/**
 * Returns the pause before the next write. A higher number is published soon, because Pods wait for it; a lower one may
 * wait.
 */
function pauseOf({ isMore, turns }: AllocatableTold): number {
  return isMore ? PAUSE_MS : Math.min(PAUSE_MS * 4 ** Math.min(turns, 5), LONGEST_PAUSE_MS);
}
