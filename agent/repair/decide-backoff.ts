/** How repairs of one object are spaced while another program undoes them. */
export type BackoffLimits = {
  /** A repair that stood this long is peace; each such span takes one step of the back-off back. Milliseconds. */
  readonly peaceMs: number;
  /** Repairs that were undone sooner than `peaceMs` in a row before the first wait. */
  readonly freeRepairs: number;
  /** The first wait, milliseconds; each further one is twice as long. */
  readonly firstMs: number;
  /** The longest wait, milliseconds. */
  readonly longestMs: number;
  /** So long after the end of the last wait the object does not count as calm, milliseconds. */
  readonly calmMs: number;
  /** So many changes by others within `windowMs` are a fight, also without a wait. */
  readonly alarmCount: number;
  readonly windowMs: number;
};

/**
 * A flush each second is repaired at once forever, which costs less than an outage; what undoes us hundreds of times a
 * second is answered three times in ten seconds.
 */
export const DEFAULT_BACKOFF_LIMITS: BackoffLimits = {
  peaceMs: 250,
  freeRepairs: 4,
  firstMs: 20,
  longestMs: 3_000,
  calmMs: 10_000,
  alarmCount: 6,
  windowMs: 60_000,
};

/** What is remembered of one object. Times are monotonic milliseconds. */
export type Contest = {
  /** Steps of the back-off; 0 without any. */
  readonly strain: number;
  /** When the last repair was decided, and then when it was done. */
  readonly repairedAtMs: number;
  /** The end of the last wait; -Infinity when there was none. */
  readonly heldUntilMs: number;
  /** The wait ends with a repair, which is not counted again; not any more when the object was well for `calmMs`. */
  readonly isWaiting: boolean;
  /** When others changed it, the last `alarmCount` times within the window. */
  readonly undoneAtMs: readonly number[];
  readonly isFight: boolean;
};

/** What to do about an object that differs from the plan, and what to remember. */
export type BackoffDecision = {
  readonly verdict: 'repair' | 'hold';
  /** A fight began with this change. */
  readonly isAlarm: boolean;
  readonly contest: Contest;
};

/** An object that was never repaired. */
const NONE: Contest = {
  strain: 0,
  repairedAtMs: Number.NEGATIVE_INFINITY,
  heldUntilMs: Number.NEGATIVE_INFINITY,
  isWaiting: false,
  undoneAtMs: [],
  isFight: false,
};

/**
 * Decides whether an object that differs from the plan is repaired now.
 * @param changedAtMs When another process changed it since the last repair; undefined when none did. A change by the
 *   kernel itself is always repaired at once, unless a wait is under way.
 */
export function decideBackoff(
  known: Contest | undefined,
  { changedAtMs, nowMs }: { readonly changedAtMs: number | undefined; readonly nowMs: number },
  limits: BackoffLimits,
): BackoffDecision {
  const before = known ?? NONE;
  if (nowMs < before.heldUntilMs) return { verdict: 'hold', isAlarm: false, contest: before };
  const isDue = before.isWaiting && nowMs < before.heldUntilMs + limits.calmMs;
  if (changedAtMs === undefined || isDue) {
    return { verdict: 'repair', isAlarm: false, contest: { ...before, repairedAtMs: nowMs, isWaiting: false } };
  }
  const strain = nextStrain(before, changedAtMs, limits);
  const waitMs = waitOf(strain, limits);
  const recent = before.undoneAtMs.filter((atMs) => nowMs - atMs < limits.windowMs);
  const undoneAtMs = [...recent, nowMs].slice(-limits.alarmCount);
  const wasFight = before.isFight && recent.length > 0;
  const isFight = wasFight || waitMs > 0 || undoneAtMs.length >= limits.alarmCount;
  const contest = { ...before, strain, undoneAtMs, isFight, isWaiting: false };
  const isAlarm = isFight && !wasFight;
  return waitMs > 0
    ? { verdict: 'hold', isAlarm, contest: { ...contest, heldUntilMs: nowMs + waitMs, isWaiting: true } }
    : { verdict: 'repair', isAlarm, contest: { ...contest, repairedAtMs: nowMs } };
}

/** Reports whether nothing of the object needs to be remembered any more. */
export function isOver(
  { repairedAtMs, heldUntilMs, undoneAtMs }: Contest,
  nowMs: number,
  limits: BackoffLimits,
): boolean {
  const lastMs = Math.max(repairedAtMs, undoneAtMs.at(-1) ?? repairedAtMs);
  return nowMs - lastMs >= limits.windowMs && nowMs >= heldUntilMs + limits.calmMs;
}

function nextStrain(
  { strain, repairedAtMs, heldUntilMs }: Contest,
  changedAtMs: number,
  limits: BackoffLimits,
): number {
  const stoodMs = changedAtMs - Math.max(repairedAtMs, heldUntilMs);
  if (stoodMs >= limits.peaceMs) return Math.max(0, strain - Math.floor(stoodMs / limits.peaceMs));
  const most = limits.freeRepairs + 1 + Math.ceil(Math.log2(limits.longestMs / limits.firstMs));
  return Math.min(strain + 1, most);
}

function waitOf(strain: number, { freeRepairs, firstMs, longestMs }: BackoffLimits): number {
  return strain <= freeRepairs ? 0 : Math.min(longestMs, firstMs * 2 ** (strain - freeRepairs - 1));
}
