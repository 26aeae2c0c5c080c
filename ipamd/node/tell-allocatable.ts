import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { type Allocatable, isWorthTelling, withAllocatable } from '../nec/decide-allocatable.ts';
import { isSameData } from '../nec/same-data.ts';

/** What is remembered of the writes that told a node nothing but how many addresses it can have. */
export type AllocatableTold = {
  readonly atMs: number;
  readonly isMore: boolean;
  readonly most: number;
  /** Times in a row that less was told soon after more, or again: it does not stay, or the definition lacks the field. */
  readonly turns: number;
};

/** What is written of the number now, and when to look again. */
export type AllocatableTelling = {
  readonly status: NodeEniConfigStatus;
  /** Set where the write is made for the number alone: to be remembered once it is written. */
  readonly told?: AllocatableTold;
  /** Milliseconds until the number may be told, or is to be looked at again. */
  readonly waitMs?: number;
};

/** A node is told at most so often, where nothing else of its object changes. */
const PAUSE_MS = 30_000;
/** Less is told later each time that it follows more: around an exhausted subnet it goes up and down all day. */
const LONGEST_PAUSE_MS = 600_000;
/** After so long without it, going down at once is no habit any more. */
const CALM_MS = 1_200_000;
/** The end of a refusal wakes nobody. */
const REFUSED_LOOK_MS = 60_000;

/**
 * Decides whether the number of addresses that a node can have is written now. It goes into every write that is made
 * anyway; a write of its own is made where that is worth it, not too often: many nodes share a subnet, and each address
 * of it is a change for all of them. `before` is the object's status, `next` what is to be written. Pure.
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

/** More is told soon, as Pods wait for it; less, which Pods wait with, may take its time. */
function pauseOf({ isMore, turns }: AllocatableTold): number {
  return isMore ? PAUSE_MS : Math.min(PAUSE_MS * 4 ** Math.min(turns, 5), LONGEST_PAUSE_MS);
}
