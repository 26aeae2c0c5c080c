import { seedOf } from '../../sim/support/seed.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';

/** Numbers from 0 to below 1. */
export type Draw = () => number;

/** The only source of chance of a world. Each purpose has a stream of its own, so what one draws changes no other. */
export class Streams {
  readonly seed: number;

  constructor(seed: number) {
    this.seed = seed;
  }

  /** Begins the stream of a purpose. */
  of(label: string): Draw {
    return seededRandom(seedOf(label, this.seed));
  }
}

/** Draws a number from `least` to below `most`. */
export function between(draw: Draw, [least, most]: readonly [number, number]): number {
  return least + draw() * (most - least);
}
