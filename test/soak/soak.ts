import { createHash } from 'node:crypto';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { AddressHistory, type Holder } from '../support/address-history.ts';
import type { System } from '../system/system.ts';
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
  /**
   * Who has which address, over all nodes, from the answers alone: a sandbox from the answer of ADD until DEL is called; if that
   * DEL could only be left for an agent that is down, until it is done.
   */
  readonly #history = new AddressHistory({ kinds: ['sandbox'] });
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

  /** An ADD gave an address to a sandbox. */
  gave(ip: string, node: string, containerId: string): void {
    this.#history.begin(this.tally.elapsedMs, ip, 'sandbox', { node, owner: containerId });
    for (const { text } of this.#history.judge()) this.tally.violation([text, ...this.#history.table(ip)].join('\n  '));
  }

  /** A sandbox has an address no more. */
  ended(ip: string, node: string, containerId: string): void {
    this.#history.end(this.tally.elapsedMs, ip, 'sandbox', { node, owner: containerId });
  }

  /** Every address that a sandbox has. */
  get addresses(): readonly (readonly [ip: string, holder: Holder])[] {
    return this.#history.held('sandbox');
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
