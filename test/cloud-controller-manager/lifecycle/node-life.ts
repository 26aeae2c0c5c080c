import fc from 'fast-check';
import type { FaultRule } from '../../../sim/kube-api/faults.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { type NodeWorld, UNINITIALIZED } from '../node-world.ts';

const PLACES = 5;

const FAULTS: readonly Fault[] = [
  { kind: 'empty' },
  { kind: 'stale', ms: 30_000 },
  { kind: 'reset' },
  { kind: 'http', status: 502 },
  { kind: 'error', code: 'InternalError' },
  { kind: 'error', code: 'RequestLimitExceeded' },
  { kind: 'error', code: 'UnauthorizedOperation' },
  { kind: 'error', code: 'UnsupportedRegion' },
  { kind: 'partial' },
  { kind: 'latency', ms: 9_000 },
];

/** What may be wrong with the API server, for the cloud controller manager alone. */
const API_FAULTS: readonly Omit<FaultRule, 'userAgent'>[] = [
  { verbs: ['list'], action: { kind: 'empty-list' } },
  { verbs: ['list', 'watch'], action: { kind: 'status', code: 410, reason: 'Expired' } },
  { verbs: ['get', 'list'], action: { kind: 'stale', changes: 1 } },
  { verbs: ['get', 'list'], action: { kind: 'stale', changes: 6 } },
  { verbs: ['watch'], action: { kind: 'watch-end', ms: 700 } },
  { verbs: ['watch'], action: { kind: 'watch-delay', ms: 20_000 } },
  { verbs: ['patch', 'delete'], action: { kind: 'status', code: 409, reason: 'Conflict' } },
  { verbs: ['get', 'list', 'patch', 'delete'], action: { kind: 'status', code: 500, reason: 'InternalError' } },
  { verbs: ['patch', 'delete', 'create'], action: { kind: 'drop-after' } },
  { verbs: ['get', 'list', 'watch'], action: { kind: 'drop-before' } },
  { verbs: ['get', 'patch', 'delete'], action: { kind: 'hang' }, chance: 0.2 },
];
/** Nodes that are none of this program's business. */
const FOREIGN = {
  aws: { providerID: 'aws:///eu-west-1/i-0123' },
  native: { providerID: 'tencentcloud://kn-aaaa0001' },
  super: { labels: { 'node.kubernetes.io/instance-type': 'eklet' } },
} as const;

/** What happens to the cluster. `cut`: all watches of the process break. */
export type Deed =
  | { readonly kind: 'join' | 'terminate' | 'silence' | 'revive' | 'stop' | 'rejoin'; readonly place: number }
  | { readonly kind: 'fault'; readonly fault: number }
  | { readonly kind: 'heal' | 'new-leader' | 'cut' }
  | { readonly kind: 'api-fault'; readonly fault: number };

const place = fc.integer({ min: 0, max: PLACES - 1 });
/** Deeds of Nodes and instances, and of a cloud that fails. */
export const CLOUD_DEED: fc.Arbitrary<Deed> = fc.oneof(
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

/** The same, with an API server that fails too. */
export const API_DEED: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 3, arbitrary: CLOUD_DEED },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('api-fault' as const),
      fault: fc.integer({ min: 0, max: API_FAULTS.length - 1 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cut' as const) }) },
);

/** Nodes and instances that come and go by deeds, beside Nodes of others. */
export class NodeLife {
  readonly #world: NodeWorld;
  /** The instance of a place, by its Node's name. */
  readonly #instances = new Map<string, string>();
  #heal: (() => void)[] = [];
  #serial = 0;
  #foreign = '';

  constructor(world: NodeWorld) {
    this.#world = world;
  }

  /** Registers the Nodes of others. */
  async joinForeign(): Promise<void> {
    for (const [name, spec] of Object.entries(FOREIGN))
      await this.#world.join(name, { ...spec, taints: [UNINITIALIZED], isReady: false });
    this.#foreign = this.#readForeign();
  }

  async do(deed: Deed): Promise<void> {
    const { host, server } = this.#world.scene;
    switch (deed.kind) {
      case 'fault':
        this.#heal.push(
          host.faults.add({ fault: FAULTS[deed.fault] ?? { kind: 'empty' }, actions: ['DescribeInstances'] }),
        );
        break;
      case 'api-fault':
        this.#breakApi(API_FAULTS[deed.fault], 1);
        break;
      case 'cut':
        server.cutWatches('ccm');
        break;
      case 'heal':
        await this.heal();
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

  /** The same of the API server, for each tenth call. */
  failSomeOfApi(): void {
    for (const rule of API_FAULTS) this.#breakApi(rule, 0.1 / API_FAULTS.length);
  }

  #breakApi(rule: Omit<FaultRule, 'userAgent'> | undefined, chance: number): void {
    if (rule === undefined) return;
    const { faults } = this.#world.scene.server.api;
    this.#heal.push(faults.add({ ...rule, userAgent: 'ccm', chance: chance * (rule.chance ?? 1) }));
  }

  /**
   * Ends what deeds have broken. A server that listed what is not there ends its watches in the end, as when it starts
   * again: whoever follows such a list learns of Nodes that do not change by another list alone.
   */
  async heal(): Promise<void> {
    for (const heal of this.#heal.splice(0)) heal();
    // What is on its way is still answered wrongly, and the next watch begins within half a minute.
    await this.#world.advance(60_000);
    this.#world.scene.server.cutWatches('ccm');
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

  /** Names of Nodes that wait although the cloud has their instances. */
  waiting(): readonly string[] {
    const { instances } = this.#world.scene.host.model.state;
    return [...this.#instances].flatMap(([name, id]) =>
      instances.has(id) && this.#world.node(name)?.isUninitialized === true ? [`${name} of ${id}`] : [],
    );
  }

  /** Whether a Node of others was changed. */
  isForeignTouched(): boolean {
    return this.#readForeign() !== this.#foreign;
  }

  #readForeign(): string {
    const all = this.#world.scene.server.objects('nodes');
    return JSON.stringify(all.filter(({ metadata }) => metadata.name in FOREIGN));
  }
}
