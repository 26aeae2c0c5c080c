import type { Known } from './node-facts.ts';

/** Wraps what was read. */
export function known<T>(value: T): Known<T> {
  return { kind: 'known', value };
}

/** Says why something could not be read, and what to do. */
export function unknown(why: string, next: string): Known<never> {
  return { kind: 'unknown', why, next };
}

/** Returns the value, undefined where it is not known: for those who have another way then. */
export function ifKnown<T>(fact: Known<T>): T | undefined {
  return fact.kind === 'known' ? fact.value : undefined;
}
