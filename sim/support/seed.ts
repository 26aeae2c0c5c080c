import { randomInt } from 'node:crypto';

/** The seed of a run that names none: `make test` fails for what was changed, and not by chance. */
export const DEFAULT_SEED = 1;

const SEEDS = 2 ** 31;

/**
 * Reads a value of SEED: a whole number, or `random`, which draws one. Absent or empty means the default.
 * @throws RangeError for anything else
 */
export function readSeed(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_SEED;
  if (text === 'random') return randomInt(1, SEEDS);
  const seed = Number(text);
  if (Number.isInteger(seed) && seed >= 1 && seed < SEEDS) return seed;
  throw new RangeError(`SEED is "random" or a whole number from 1 to ${SEEDS - 1}, not "${text}"`);
}

/**
 * Reads a value of RUNS: how many times as many runs a random test makes. Absent or empty means 1.
 * @throws RangeError for what is no whole number from 1
 */
export function readRuns(text: string | undefined): number {
  const runs = text === undefined || text === '' ? 1 : Number(text);
  if (Number.isInteger(runs) && runs >= 1) return runs;
  throw new RangeError(`RUNS is a whole number from 1, not "${text}"`);
}

/** The seed of this process. Every random test takes its own from it. */
export const SEED = readSeed(process.env['SEED']);

/** Returns the seed that SEED says; where it says none, a new one: for what is run to find what nobody found yet. */
export function givenOrNewSeed(): number {
  return process.env['SEED'] ? SEED : readSeed('random');
}

/** How many times as many runs as usual random tests make in this process. */
export const RUNS = readRuns(process.env['RUNS']);

/** Derives a seed for one purpose from a run's seed: the same for the same label, another for another (FNV-1a). */
export function seedOf(label: string, seed: number = SEED): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${seed} ${label}`)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0) % SEEDS;
}

/**
 * Lists different seeds for tests that have theirs in the title: 1, 2, 3 … under the default seed, drawn ones under any
 * other; RUNS times as many as `count`.
 */
export function seedList(count: number, seed: number = SEED, runs: number = RUNS): readonly number[] {
  const seeds = new Set<number>();
  for (let at = 1; seeds.size < count * runs; at++) seeds.add(seed === DEFAULT_SEED ? at : seedOf(`seed ${at}`, seed));
  return [...seeds];
}
