/** How fast a subnet's addresses are used up, as far as it was measured. */
export type Growth =
  | { readonly kind: 'unknown'; readonly why: string }
  /**
   * From the creation times of existing records: `count` were created in the last `windowMs`. The true growth is at
   * most this, because it is reduced by records that were deleted in the window.
   */
  | { readonly kind: 'births'; readonly of: string; readonly windows: readonly BirthWindow[] }
  /** From two reads: addresses that were added and removed between them. */
  | { readonly kind: 'sample'; readonly spanMs: number; readonly came: number; readonly went: number };

/** Number of records created in a window that ends now. */
type BirthWindow = { readonly windowMs: number; readonly count: number };

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
type WindowForecast = BirthWindow & { readonly soonestMs: number };

const HOUR_MS = 3_600_000;
/** Windows in which created records are counted: the last hour, day and week. */
const BIRTH_WINDOWS_MS: readonly number[] = [HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS];
/** Width of the range on each side, in standard deviations of a random count: about 95 of 100 cases. */
const SPREAD = 2;

/** Counts records created in each window. An unknown creation time (0) counts as old. */
export function countBirths(createdMs: readonly number[], nowMs: number): readonly BirthWindow[] {
  return BIRTH_WINDOWS_MS.map((windowMs) => ({
    windowMs,
    count: createdMs.filter((ms) => ms > nowMs - windowMs).length,
  }));
}

/**
 * Forecasts when `free` addresses are used up; undefined `free` means not known. Creation times give only the soonest
 * time. Two reads give a range, which is wider the fewer changes were counted.
 */
export function forecastOf(free: number | undefined, growth: Growth): Forecast {
  if (free === 0) return { kind: 'exhausted' };
  if (growth.kind === 'unknown') return growth;
  if (growth.kind === 'sample') return fromSample(free, growth);
  const ground = `living ${growth.of} by their age`;
  if (growth.windows.every(({ count }) => count === 0)) return { kind: 'not-growing', ground };
  if (free === undefined) return { kind: 'unknown', why: 'how many are free is known with --cloud only' };
  const byWindow = growth.windows
    .filter(({ count }) => count > 0)
    .map(({ windowMs, count }) => ({ windowMs, count, soonestMs: Math.round((free / count) * windowMs) }));
  return { kind: 'not-before', byWindow, ground };
}

function fromSample(
  free: number | undefined,
  { spanMs, came, went }: Extract<Growth, { readonly kind: 'sample' }>,
): Forecast {
  const seconds = Math.round(spanMs / 1_000);
  const ground = `${came} came and ${went} went within ${seconds} s`;
  const net = came - went;
  const spread = SPREAD * Math.sqrt(came + went);
  const most = net + spread;
  if (most <= 0 || spanMs <= 0) return { kind: 'not-growing', ground };
  if (free === undefined) return { kind: 'unknown', why: 'how many are free is known with --cloud only' };
  const least = net - spread;
  return {
    kind: 'range',
    soonestMs: Math.round((free / most) * spanMs),
    latestMs: least > 0 ? Math.round((free / least) * spanMs) : undefined,
    ground,
  };
}
