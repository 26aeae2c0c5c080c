import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { type Allocatable, isWorthReporting, withAllocatable } from '../decide/decide-allocatable.ts';
import { isSameData } from '../decide/same-data.ts';

/** The last write that was made only to publish how many addresses a node can have. */
export type AllocatableWrite = {
  readonly atMs: number;
  readonly isMore: boolean;
  readonly max: number;
  /**
   * How many times in a row a lower number soon followed a higher one, or was written again: the number does not stay,
   * or the definition lacks the field.
   */
  readonly flaps: number;
};

/** What is written of the number now, and when to check again. */
export type AllocatableDecision = {
  readonly status: NodeEniConfigStatus;
  /** Present where the write is made for the number alone: to be remembered once it is written. */
  readonly write?: AllocatableWrite;
  /** Milliseconds until the number may be written, or is to be checked again. */
  readonly waitMs?: number;
};

/** Shortest time between two writes of a node that are made for the number alone. */
const PAUSE_MS = 30_000;
/**
 * A lower number is written later each time that it follows a higher one: around an exhausted subnet it goes up and
 * down all day.
 */
const MAX_PAUSE_MS = 600_000;
/** After so long without such a write the count of alternations begins again. */
const CALM_MS = 1_200_000;
/** The end of a refusal enqueues no node. */
const REFUSED_CHECK_MS = 60_000;

/**
 * Decides whether the number of allocatable addresses is written now. It goes into every write that is made anyway. A
 * write for the number alone is made where that is worth it, and not too often: many nodes share a subnet, and each
 * address of it changes the number of all of them. `before` is the object's status, `next` what is to be written.
 */
export function decideAllocatableWrite(
  before: NodeEniConfigStatus,
  next: NodeEniConfigStatus,
  now: Allocatable | undefined,
  last: AllocatableWrite | undefined,
  nowMs: number,
): AllocatableDecision {
  if (now === undefined) return { status: next };
  const recheck = now.isRefused && now.max < now.limit ? { waitMs: REFUSED_CHECK_MS } : {};
  const status = withAllocatable(next, now);
  if (!isSameData(next, before)) return { status, ...recheck };
  const published = before.allocatableRouteENIIPs;
  if (!isWorthReporting(now, published)) return { status: next, ...recheck };
  const write = nextWrite(now.max, now.max > (published ?? now.limit), last, nowMs);
  const pauseMs = last === undefined ? 0 : last.atMs + pauseOf(write) - nowMs;
  return pauseMs > 0 ? { status: next, waitMs: pauseMs } : { status, write };
}

function nextWrite(max: number, isMore: boolean, last: AllocatableWrite | undefined, atMs: number): AllocatableWrite {
  const isCalm = last === undefined || atMs - last.atMs > CALM_MS;
  if (isCalm) return { atMs, isMore, max, flaps: 0 };
  const isFlap = !isMore && (last.isMore || max >= last.max);
  return { atMs, isMore, max, flaps: last.flaps + (isFlap ? 1 : 0) };
}

/**
 * Returns the pause before the next write. A higher number is published soon, because Pods wait for it; a lower one may
 * wait.
 */
function pauseOf({ isMore, flaps }: AllocatableWrite): number {
  return isMore ? PAUSE_MS : Math.min(PAUSE_MS * 4 ** Math.min(flaps, 5), MAX_PAUSE_MS);
}
