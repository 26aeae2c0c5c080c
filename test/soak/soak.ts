import { createHash } from 'node:crypto';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import type { System } from '../system/system.ts';
import { AddressBook } from './book.ts';
import { Pace } from './pace.ts';
import type { Slot } from './slot.ts';
import type { SoakNode } from './soak-node.ts';
import { Tally } from './tally.ts';

/** What a soak is to do. */
export type SoakSpec = {
  readonly seed: number;
  /** ADDs that must succeed. */
  readonly adds: number;
  /** How long the load may last. */
  readonly lastsMs: number;
  /** Value of the agents' --fast-path. */
  readonly fastPath: string;
  /** Keep logs and measurements of a run that passed too. */
  readonly keepsEvidence: boolean;
};

/** Share of the time in which the wanted number of ADDs is made when all goes well; the rest is for trouble. */
const BUSY_SHARE = 0.7;

/** A running soak: the system, and what the harness knows of it. */
export class Soak {
  readonly spec: SoakSpec;
  readonly system: System<SoakNode>;
  readonly tally = new Tally(() => performance.now());
  readonly book = new AddressBook();
  /** Addresses whose DEL is under way or left for an agent, with the place that has them until it is done. */
  readonly ending = new Map<string, Slot>();
  /** Pids of what the soak itself killed. */
  readonly expectedEnds = new Set<number>();
  /** Sandboxes that died without a DEL. */
  lost = 0;
  readonly pace: Pace;
  /** Choices of the load. What it meets depends on timing, so a seed repeats the mixture, not each call. */
  readonly random: () => number;
  /** Set when everything is to end at once. */
  isAborted = false;
  #number = 0;

  constructor(spec: SoakSpec, system: System<SoakNode>) {
    this.spec = spec;
    this.system = system;
    this.pace = new Pace(spec.adds / ((spec.lastsMs * BUSY_SHARE) / 1_000));
    this.random = seededRandom(spec.seed);
  }

  /** The load is to end: it was enough, or the time is over. */
  get isOver(): boolean {
    const { adds, lastsMs } = this.spec;
    return this.isAborted || this.tally.of('ADDs') >= adds || this.tally.elapsedMs >= lastsMs;
  }

  /** Number of the next Pod. */
  nextNumber(): number {
    this.#number += 1;
    return this.#number;
  }

  /** A sandbox's id as runtimes make them. */
  containerId(number: number): string {
    return createHash('sha256').update(`${this.spec.seed}/${number}`).digest('hex');
  }
}
