/** The present rate of one API, with its history. Rates are calls a second. */
export type Rate = {
  readonly perSecond: number;
  /** Calls that may start at once, as of `updatedMs`; a fraction grows to the next call. */
  readonly tokens: number;
  /** Monotonic milliseconds. */
  readonly updatedMs: number;
  /** No call before this. Monotonic milliseconds. */
  readonly pausedUntilMs: number;
  /** When the rate was last cut; refusals of calls that had started before it contain no new information. */
  readonly cutAtMs: number;
  /** Share of the recent calls that were refused, 0 to 1. */
  readonly refusedShare: number;
};

/** How a rate adapts. */
export type RateSettings = {
  /** The initial rate: the documented limit. */
  readonly startPerSecond: number;
  readonly ceilingPerSecond: number;
  readonly floorPerSecond: number;
  /** Calls a second more for each second of calling without refusal. */
  readonly growthPerSecond: number;
};

/**
 * Calls that may start together after idle time, in seconds of the rate. Small, because a server counts calls per
 * second: saved calls would come on top of those of the present second.
 */
const BURST_SECONDS = 0.05;

/** Weight of one call in `refusedShare`: it averages about the last sixteen. */
const GAIN = 1 / 16;
/**
 * A cut is as large as the share that is refused, within these bounds: at least this, so that one refusal has an
 * effect, and at most half.
 */
const MIN_CUT = 0.05;
const MAX_CUT = 0.5;
/** Largest growth for one accepted call; without a bound a slow rate would double with each of its few calls. */
const MAX_GROWTH = 0.25;
/** When more than this share is refused, calls continue only after a pause. */
const PAUSE_SHARE = 0.5;

/** Creates an unused rate. */
export function createRate(settings: RateSettings, nowMs: number): Rate {
  return {
    perSecond: Math.min(settings.startPerSecond, settings.ceilingPerSecond),
    tokens: 1,
    updatedMs: nowMs,
    pausedUntilMs: nowMs,
    cutAtMs: Number.NEGATIVE_INFINITY,
    refusedShare: 0,
  };
}

/** Updates the tokens to the present time. */
function refillRate(rate: Rate, nowMs: number): Rate {
  const elapsedMs = Math.max(0, nowMs - Math.max(rate.updatedMs, rate.pausedUntilMs));
  const maxTokens = Math.max(1, rate.perSecond * BURST_SECONDS);
  return { ...rate, tokens: Math.min(maxTokens, rate.tokens + (elapsedMs * rate.perSecond) / 1000), updatedMs: nowMs };
}

/** Returns the milliseconds from `nowMs` until a call may start; 0 when it may start now. */
export function rateWaitMs(rate: Rate, nowMs: number): number {
  if (rate.pausedUntilMs > nowMs) return rate.pausedUntilMs - nowMs;
  const { tokens } = refillRate(rate, nowMs);
  // Sums of fractions may miss 1 by the last bit; without the tolerance a timer would fire with nothing to do.
  return tokens >= 1 - 1e-6 ? 0 : Math.max(1, Math.ceil(((1 - tokens) * 1000) / rate.perSecond));
}

/** Takes one call's token. To be called only after `rateWaitMs` returned 0. */
export function takeFromRate(rate: Rate, nowMs: number): Rate {
  const refilled = refillRate(rate, nowMs);
  return { ...refilled, tokens: Math.max(0, refilled.tokens - 1) };
}

/** Updates a rate after a call that was not refused: it grows with the time that the call represents. */
export function growRate(rate: Rate, settings: RateSettings, nowMs: number): Rate {
  // One call represents 1/perSecond seconds: growth per second of calls, none for idle time.
  const growth = Math.min(settings.growthPerSecond / rate.perSecond, MAX_GROWTH);
  const grown = rate.perSecond + growth;
  const refusedShare = rate.refusedShare * (1 - GAIN);
  return { ...refillRate(rate, nowMs), perSecond: Math.min(settings.ceilingPerSecond, grown), refusedShare };
}

/**
 * Updates a rate after a call that was refused for its rate: cuts it by the share that is refused, as DCTCP does with
 * marks.
 *
 * When the rate is a tenth too high, a tenth of the calls is refused and a tenth is cut. A rare refusal costs little,
 * where halving at each one would cost much. Refusals of calls that started before the last cut only count towards the
 * share; otherwise one overload would be punished once for each call in flight.
 */
export function cutRate(
  rate: Rate,
  settings: RateSettings,
  refusal: { readonly startedMs: number; readonly afterMs: number },
  nowMs: number,
): Rate {
  const refilled = refillRate(rate, nowMs);
  const refusedShare = rate.refusedShare * (1 - GAIN) + GAIN;
  const pauseMs = refusedShare > PAUSE_SHARE ? refusal.afterMs : 0;
  const updated = { ...refilled, refusedShare, pausedUntilMs: Math.max(rate.pausedUntilMs, nowMs + pauseMs) };
  if (refusal.startedMs < rate.cutAtMs) return updated;
  const cut = Math.min(MAX_CUT, Math.max(MIN_CUT, refusedShare));
  const perSecond = Math.max(settings.floorPerSecond, rate.perSecond * (1 - cut));
  return { ...updated, perSecond, tokens: Math.min(updated.tokens, 1), cutAtMs: nowMs };
}
