/** What is known of how many addresses a subnet gives over time. */
export type Growth =
  | { readonly kind: 'unknown'; readonly why: string }
  /**
   * From when living records were made: as many as `count` came in the last `windowMs`. What ended meanwhile is not seen,
   * so the true growth is this or less.
   */
  | { readonly kind: 'births'; readonly of: string; readonly windows: readonly BirthWindow[] }
  /** From two looks: what came and what went between them. */
  | { readonly kind: 'sample'; readonly spanMs: number; readonly came: number; readonly went: number };

/** Births in a window that ends now. */
export type BirthWindow = { readonly windowMs: number; readonly count: number };

/** When the free addresses of a subnet are used up. A time is there only with what it was made of. */
export type Forecast =
  | { readonly kind: 'unknown'; readonly why: string }
  | { readonly kind: 'exhausted' }
  | { readonly kind: 'not-growing'; readonly ground: string }
  /** Not before the soonest; later, or never, when addresses come free. */
  | { readonly kind: 'not-before'; readonly byWindow: readonly WindowForecast[]; readonly ground: string }
  /** Undefined latest: it may never happen. */
  | {
      readonly kind: 'range';
      readonly soonestMs: number;
      readonly latestMs: number | undefined;
      readonly ground: string;
    };

/** How long the free addresses last when the window's births go on and nothing ends. */
export type WindowForecast = BirthWindow & { readonly soonestMs: number };

const HOUR_MS = 3_600_000;
/** Windows in which births are counted: the last hour, day and week. */
export const BIRTH_WINDOWS_MS: readonly number[] = [HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS];
/** So many standard deviations of a random count on each side: about 95 of 100 cases. */
const SPREAD = 2;

/** Counts births in each window. Times that nobody told (0) count as old. Pure. */
export function countBirths(createdMs: readonly number[], nowMs: number): readonly BirthWindow[] {
  return BIRTH_WINDOWS_MS.map((windowMs) => ({
    windowMs,
    count: createdMs.filter((ms) => ms > nowMs - windowMs).length,
  }));
}

/**
 * Tells when `free` addresses run out. Undefined free: not known. Never more sure than what was measured: births give the
 * soonest only, two looks a range that widens with the chance in what was counted. Pure.
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
