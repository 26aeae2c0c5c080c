/** How fast one API may be called now, and what was learnt about it. Rates are calls a second. */
export type Rate = {
  readonly perSecond: number;
  /** Calls that may start at once, as of `updatedMs`; a fraction grows to the next call. */
  readonly tokens: number;
  /** Monotonic milliseconds. */
  readonly updatedMs: number;
  /** No call before this. Monotonic milliseconds. */
  readonly pausedUntilMs: number;
  /** When the rate was last cut; refusals of calls that had started before it tell nothing new. */
  readonly cutAtMs: number;
  /** Share of the recent calls that were refused, 0 to 1. */
  readonly refusedShare: number;
};

/** How a rate adapts. */
export type RateSettings = {
  /** Where it starts: the documented limit. */
  readonly startPerSecond: number;
  readonly ceilingPerSecond: number;
  readonly floorPerSecond: number;
  /** Calls a second more for each second of calling without refusal. */
  readonly growthPerSecond: number;
};

/**
 * Calls that may start together after idle time, in seconds of the rate. Small: a server counts calls per second, and
 * what is saved up would come on top of the second's own.
 */
const BURST_SECONDS = 0.05;

/** Weight of one call in `refusedShare`: it follows the last sixteen or so. */
const GAIN = 1 / 16;
/** A cut takes the share that is refused, but no less than this, that one refusal is heard, and no more than half. */
const LEAST_CUT = 0.05;
const MOST_CUT = 0.5;
/** Growth for one accepted call; without a bound a slow rate would double with each of its few calls. */
const MOST_GROWTH = 0.25;
/** When more than this share is refused, calling goes on only after a pause. */
const PAUSE_SHARE = 0.5;

/** A rate that has not been used. Pure. */
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

/** Brings the tokens up to date. Pure. */
export function refillRate(rate: Rate, nowMs: number): Rate {
  const elapsedMs = Math.max(0, nowMs - Math.max(rate.updatedMs, rate.pausedUntilMs));
  const most = Math.max(1, rate.perSecond * BURST_SECONDS);
  return { ...rate, tokens: Math.min(most, rate.tokens + (elapsedMs * rate.perSecond) / 1000), updatedMs: nowMs };
}

/** Milliseconds from `nowMs` until a call may start; 0 when it may now. Pure. */
export function rateWaitMs(rate: Rate, nowMs: number): number {
  if (rate.pausedUntilMs > nowMs) return rate.pausedUntilMs - nowMs;
  const { tokens } = refillRate(rate, nowMs);
  // Sums of fractions fall short of 1 by the last bit; without the allowance a wake-up would find nothing to do.
  return tokens >= 1 - 1e-6 ? 0 : Math.max(1, Math.ceil(((1 - tokens) * 1000) / rate.perSecond));
}

/** Takes one call's token. Only after `rateWaitMs` said 0. Pure. */
export function takeFromRate(rate: Rate, nowMs: number): Rate {
  const refilled = refillRate(rate, nowMs);
  return { ...refilled, tokens: Math.max(0, refilled.tokens - 1) };
}

/** Learns from a call that was not refused: grows with the time it stood for. Pure. */
export function growRate(rate: Rate, settings: RateSettings, nowMs: number): Rate {
  // One call stands for 1/perSecond seconds: growth per second of calling, none for idle time.
  const growth = Math.min(settings.growthPerSecond / rate.perSecond, MOST_GROWTH);
  const grown = rate.perSecond + growth;
  const refusedShare = rate.refusedShare * (1 - GAIN);
  return { ...refillRate(rate, nowMs), perSecond: Math.min(settings.ceilingPerSecond, grown), refusedShare };
}

/**
 * Learns from a call that was refused for its rate: cuts the rate by the share that is refused, as DCTCP does with
 * marks. Too fast by a tenth, a tenth is refused and a tenth is cut; a refusal now and then costs little, where halving
 * for each would. Refusals of calls that started before the last cut only count towards the share, else one overload
 * would be punished once per call in flight. Pure.
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
  const learnt = { ...refilled, refusedShare, pausedUntilMs: Math.max(rate.pausedUntilMs, nowMs + pauseMs) };
  if (refusal.startedMs < rate.cutAtMs) return learnt;
  const cut = Math.min(MOST_CUT, Math.max(LEAST_CUT, refusedShare));
  const perSecond = Math.max(settings.floorPerSecond, rate.perSecond * (1 - cut));
  return { ...learnt, perSecond, tokens: Math.min(learnt.tokens, 1), cutAtMs: nowMs };
}
