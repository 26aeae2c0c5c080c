import type { Known } from './node-facts.ts';

/** Wraps a value that was read. */
export function known<T>(value: T): Known<T> {
  return { kind: 'known', value };
}

/** Returns a fact that could not be read: why, and what the user can do. */
export function unknown(why: string, next: string): Known<never> {
  return { kind: 'unknown', why, next };
}

/** Returns the value; undefined where it is not known, for callers that have another source. */
export function ifKnown<T>(fact: Known<T>): T | undefined {
  return fact.kind === 'known' ? fact.value : undefined;
}
