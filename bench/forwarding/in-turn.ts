import type { Path } from './path.ts';

/** Short bursts, one of each path in turn: what else the machine does falls on all alike. */
const ROUNDS = 41;
const BURST_MS = 60;

/** Packets per second of each burst, by path, and how they were measured. */
export type Samples = { readonly samples: ReadonlyMap<string, readonly number[]>; readonly how: string };

/** Measures paths in turn. */
export async function measureInTurn(paths: ReadonlyMap<string, Path>): Promise<Samples> {
  const samples = new Map<string, number[]>([...paths.keys()].map((name) => [name, []]));
  for (let round = -1; round < ROUNDS; round++) {
    for (const [name, path] of paths) {
      const rate = await path.measure(BURST_MS);
      // The first round warms caches and is thrown away.
      if (round >= 0) samples.get(name)?.push(rate);
    }
  }
  return { samples, how: `${ROUNDS} bursts of ${BURST_MS} ms, in turn` };
}
