/**
 * One circuit breaker: closed (calls pass) until tripped, then open for a time that doubles with each trip in a row.
 */
export type Breaker = { readonly openUntilMs: number; readonly trips: number };

/** Breakers by key: `subnet/subnet-a`, `vpc-enis/vpc-1`, `instance-enis/ins-1`. A key that is absent is closed. */
export type Breakers = ReadonlyMap<string, Breaker>;

const MAX_OPEN_MS = 600_000;
const MAX_TRIPS = 10;

/** Opens a breaker for `firstMs`, twice as long for each trip in a row, ten minutes at most. */
export function tripBreaker(breakers: Breakers, key: string, firstMs: number, nowMs: number): Breakers {
  const trips = Math.min((breakers.get(key)?.trips ?? 0) + 1, MAX_TRIPS);
  const openMs = Math.min(firstMs * 2 ** (trips - 1), MAX_OPEN_MS);
  return new Map(breakers).set(key, { openUntilMs: nowMs + openMs, trips });
}

/** Closes a breaker and forgets its trips: a call succeeded, or the quota was raised or freed. */
export function resetBreaker(breakers: Breakers, key: string): Breakers {
  if (!breakers.has(key)) return breakers;
  const rest = new Map(breakers);
  rest.delete(key);
  return rest;
}

/** Lets the next call of a key be the probe, because some quota was freed; its trips are remembered. */
export function allowProbe(breakers: Breakers, key: string, nowMs: number): Breakers {
  const breaker = breakers.get(key);
  if (breaker === undefined || breaker.openUntilMs <= nowMs) return breakers;
  return new Map(breakers).set(key, { ...breaker, openUntilMs: nowMs });
}

/**
 * Reports whether calls of a key must wait. After the time they need not, and the next call is the probe: its failure
 * trips the breaker for longer, its success resets it.
 */
export function isBreakerOpen(breakers: Breakers, key: string, nowMs: number): boolean {
  const breaker = breakers.get(key);
  return breaker !== undefined && nowMs < breaker.openUntilMs;
}
