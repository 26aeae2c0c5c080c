/** Nodes and instances come, go and stop, the cloud fails and answers wrongly, leaders die: no Node is deleted that the cloud has. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { assertLaw } from '../../support/law.ts';
import type { Fault } from '../../vpc/api/faults.ts';
import { NodeWorld, UNINITIALIZED } from '../node-world.ts';

const MINUTE_MS = 60_000;
const PLACES = 5;

const FAULTS: readonly Fault[] = [
  { kind: 'empty' },
  { kind: 'stale', ms: 30_000 },
  { kind: 'reset' },
  { kind: 'http', status: 502 },
  { kind: 'error', code: 'InternalError' },
  { kind: 'error', code: 'RequestLimitExceeded' },
  { kind: 'error', code: 'UnauthorizedOperation' },
  { kind: 'latency', ms: 9_000 },
];

type Deed =
  | { readonly kind: 'join' | 'terminate' | 'silence' | 'revive' | 'stop' | 'rejoin'; readonly place: number }
  | { readonly kind: 'fault'; readonly fault: number }
  | { readonly kind: 'heal' | 'new-leader' };

const place = fc.integer({ min: 0, max: PLACES - 1 });
const DEED: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        ...(['join', 'join', 'terminate', 'silence', 'silence', 'revive', 'stop', 'rejoin'] as const),
      ),
      place,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      fault: fc.integer({ min: 0, max: FAULTS.length - 1 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('heal' as const, 'new-leader' as const) }) },
);

class Life {
  readonly #world: NodeWorld;
  /** The instance of a place, by its Node's name. */
  readonly #instances = new Map<string, string>();
  #heal: (() => void)[] = [];
  #serial = 0;

  constructor(world: NodeWorld) {
    this.#world = world;
  }

  async do(deed: Deed): Promise<void> {
    const { host } = this.#world.scene;
    switch (deed.kind) {
      case 'fault':
        this.#heal.push(
          host.faults.add({ fault: FAULTS[deed.fault] ?? { kind: 'empty' }, actions: ['DescribeInstances'] }),
        );
        break;
      case 'heal':
        this.heal();
        break;
      case 'new-leader':
        await this.#world.lead('--node-release-percent=100');
        break;
      default:
        await this.#doAt(`n${deed.place}`, deed.kind);
    }
  }

  async #doAt(name: string, kind: Deed['kind']): Promise<void> {
    const { state } = this.#world.scene.host.model;
    const id = this.#instances.get(name) ?? '';
    const instance = state.instances.get(id);
    if (kind === 'join' && this.#world.node(name) === undefined) await this.#join(name);
    if (kind === 'terminate' && instance !== undefined) {
      await this.#world.terminate(name, id);
    }
    if (kind === 'silence') await this.#world.setReady(name, 'Unknown');
    if (kind === 'revive' && instance !== undefined) {
      instance.state = 'RUNNING';
      await this.#world.setReady(name, 'True');
    }
    if (kind === 'stop' && instance !== undefined) {
      instance.state = 'STOPPED';
      await this.#world.setReady(name, 'Unknown');
    }
    // Another machine gets the name at once.
    if (kind === 'rejoin' && this.#world.node(name) === undefined) await this.#join(name);
  }

  async #join(name: string): Promise<void> {
    const id = `ins-life${String(++this.#serial).padStart(4, '0')}`;
    this.#instances.set(name, id);
    this.#world.addInstance(id);
    await this.#world.join(name, { providerID: `qcloud:///100003/${id}`, taints: [UNINITIALIZED] });
  }

  /** A fault of each fifth answer, from now on. */
  failSome(): void {
    for (const fault of FAULTS)
      this.#world.scene.host.faults.add({ fault, actions: ['DescribeInstances'], probability: 0.2 / FAULTS.length });
  }

  heal(): void {
    for (const heal of this.#heal.splice(0)) heal();
  }

  /** Names of Nodes that are missing although the cloud has their instances. */
  wronglyDeleted(): readonly string[] {
    const { instances } = this.#world.scene.host.model.state;
    return [...this.#instances].flatMap(([name, id]) =>
      instances.has(id) && this.#world.node(name) === undefined ? [`${name} of ${id}`] : [],
    );
  }

  /** Names of Nodes that are there although their instances are gone. */
  left(): readonly string[] {
    const { instances } = this.#world.scene.host.model.state;
    return [...this.#instances].flatMap(([name, id]) =>
      !instances.has(id) && this.#world.node(name) !== undefined ? [`${name} of ${id}`] : [],
    );
  }
}

async function live(t: ExecutionContext, deeds: readonly (readonly [Deed, number])[]): Promise<void> {
  const world = await NodeWorld.start('--node-release-percent=100');
  await world.joinInstance('always', 'ins-always01');
  await world.advance(6 * MINUTE_MS);
  const life = new Life(world);
  life.failSome();
  for (const [deed, waitMs] of deeds) {
    await life.do(deed);
    await world.advance(waitMs);
    t.deepEqual(life.wronglyDeleted(), [], JSON.stringify(deed));
  }
  life.heal();
  await world.advance(90 * MINUTE_MS);
  t.deepEqual(life.wronglyDeleted(), []);
  const held = new Set(world.scene.events('NodeDeletionHeld'));
  // Of an instance that went before the cloud ever described it, nothing shows that it was one of this VPC.
  const unseen = [...held].some((text) => text.includes('never described'));
  if (!unseen) t.deepEqual(life.left(), []);
  await world.stop();
}

test('law: no Node is deleted that the cloud has, whatever it answers; in the end those it lacks are deleted', async (t) => {
  const life = fc.array(fc.tuple(DEED, fc.constantFrom(500, 6_000, 25_000, 2 * MINUTE_MS)), {
    minLength: 4,
    maxLength: 14,
  });
  await assertLaw(t, (inner) => fc.asyncProperty(life, (deeds) => live(inner, deeds)), {
    numRuns: 12,
    endOnFailure: true,
  });
});
