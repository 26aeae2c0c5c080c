import { setImmediate } from 'node:timers/promises';
import type { Measure } from './measures.ts';
import type { Path } from './path.ts';

/** How often and how long each path is measured. */
export type Rounds = { readonly rounds: number; readonly burstMs: number };

/** Figures of each burst, by measure and path. The same place in two lists is the same round. */
export type Samples<M extends string> = Readonly<Record<M, ReadonlyMap<string, readonly number[]>>>;

/** Measures paths in turn, in short bursts: what else the machine does falls on all alike. */
export async function measureInTurn<M extends string>(
  paths: ReadonlyMap<string, Path>,
  measures: Readonly<Record<M, Measure>>,
  { rounds, burstMs }: Rounds,
): Promise<Samples<M>> {
  const names = Object.keys(measures) as M[];
  const samples = Object.fromEntries(
    names.map((name) => [name, new Map<string, number[]>([...paths.keys()].map((path) => [path, []]))]),
  ) as Record<M, Map<string, number[]>>;
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      for (const [path, one] of rotated([...paths], Math.max(0, round))) {
        const figure = measures[name](one, burstMs);
        // The first round warms caches and is thrown away.
        if (round >= 0) samples[name].get(path)?.push(figure);
      }
      // Bursts do not yield.
      await setImmediate();
    }
  }
  return samples;
}

/** Each path has each place in the row: what the one before leaves in the caches falls on all alike, too. */
function rotated<T>(items: readonly T[], by: number): readonly T[] {
  const at = by % items.length;
  return [...items.slice(at), ...items.slice(0, at)];
}
