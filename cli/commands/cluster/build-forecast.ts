/** How fast a subnet's addresses are used up, as far as it was measured. */
export type Growth =
  | { readonly kind: 'unknown'; readonly why: string }
  /**
   * From the creation times of existing records: `count` were created in the last `windowMs`. The true growth is at
   * most this, because it is reduced by records that were deleted in the window.
   */
  | { readonly kind: 'births'; readonly of: string; readonly windows: readonly CreationWindow[] }
  /** From two reads: addresses that were added and removed between them. */
  | { readonly kind: 'sample'; readonly spanMs: number; readonly added: number; readonly removed: number };

/** Number of records created in a window that ends now. */
type CreationWindow = { readonly windowMs: number; readonly count: number };

/** When the free addresses of a subnet are used up. A forecast with a time also says what it was computed from. */
export type Forecast =
  | { readonly kind: 'unknown'; readonly why: string }
  | { readonly kind: 'exhausted' }
  | { readonly kind: 'not-growing'; readonly ground: string }
  /** Not before the soonest time; later or never where addresses are released. */
  | { readonly kind: 'not-before'; readonly byWindow: readonly WindowForecast[]; readonly ground: string }
  /** Between soonest and latest; an undefined latest means that it may never happen. */
  | {
      readonly kind: 'range';
      readonly soonestMs: number;
      readonly latestMs: number | undefined;
      readonly ground: string;
    };

/** How long the free addresses last when as many records are created as in the window, and none is deleted. */
type WindowForecast = CreationWindow & { readonly soonestMs: number };

const FREE_UNKNOWN = 'ipamd has not published how many are free; --cloud asks the cloud';
const HOUR_MS = 3_600_000;
/** Windows in which created records are counted: the last hour, day and week. */
const CREATION_WINDOWS_MS: readonly number[] = [HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS];
/** Width of the range on each side, in standard deviations of a random count: about 95 of 100 cases. */
const SPREAD = 2;

/** Counts records created in each window. An unknown creation time (0) counts as old. */
export function countCreations(createdMs: readonly number[], nowMs: number): readonly CreationWindow[] {
  return CREATION_WINDOWS_MS.map((windowMs) => ({
    windowMs,
    count: createdMs.filter((ms) => ms > nowMs - windowMs).length,
  }));
}

/**
 * Forecasts when `free` addresses are used up; undefined `free` means not known. Creation times give only the soonest
 * time. Two reads give a range, which is wider the fewer changes were counted.
 */
export function buildForecast(free: number | undefined, growth: Growth): Forecast {
  if (free === 0) return { kind: 'exhausted' };
  if (growth.kind === 'unknown') return growth;
  if (growth.kind === 'sample') return fromSample(free, growth);
  const ground = `living ${growth.of} by their age`;
  if (growth.windows.every(({ count }) => count === 0)) return { kind: 'not-growing', ground };
  if (free === undefined) return { kind: 'unknown', why: FREE_UNKNOWN };
  const byWindow = growth.windows
    .filter(({ count }) => count > 0)
    .map(({ windowMs, count }) => ({ windowMs, count, soonestMs: Math.round((free / count) * windowMs) }));
  return { kind: 'not-before', byWindow, ground };
}

function fromSample(
  free: number | undefined,
  { spanMs, added, removed }: Extract<Growth, { readonly kind: 'sample' }>,
): Forecast {
  const seconds = Math.round(spanMs / 1_000);
  const ground = `${added} came and ${removed} went within ${seconds} s`;
  const net = added - removed;
  const spread = SPREAD * Math.sqrt(added + removed);
  const maxGrowth = net + spread;
  if (maxGrowth <= 0 || spanMs <= 0) return { kind: 'not-growing', ground };
  if (free === undefined) return { kind: 'unknown', why: FREE_UNKNOWN };
  const minGrowth = net - spread;
  return {
    kind: 'range',
    // Some are free: it is not now.
    soonestMs: Math.max(1, Math.round((free / maxGrowth) * spanMs)),
    latestMs: minGrowth > 0 ? Math.max(1, Math.round((free / minGrowth) * spanMs)) : undefined,
    ground,
  };
}
