/** Nodes come, go and change machines, people interfere, the cloud fails, leaders die: in the end each route is right. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import type { RunningIpamd } from '../../../ipamd/ipamd.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { assertLaw } from '../../support/law.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import { type RoutesScene, routesScene } from './routes-scene.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const PLACES = 6;

const FAULTS: readonly Fault[] = [
  { kind: 'reset', after: true },
  { kind: 'reset' },
  { kind: 'hang', after: true },
  { kind: 'http', status: 502, after: true },
  { kind: 'error', code: 'InternalError', after: true },
  { kind: 'error', code: 'RequestLimitExceeded' },
  { kind: 'error', code: 'LimitExceeded' },
  { kind: 'error', code: 'UnauthorizedOperation' },
  { kind: 'stale', ms: 20_000 },
  { kind: 'latency', ms: 9_000 },
];
const ACTIONS = ['CreateGlobalRoutes', 'DeleteGlobalRoutes', 'DescribeGlobalRoutes', 'DescribeUsedIpAddress'];

type Deed =
  | { readonly kind: 'join' | 'leave' | 'remake' | 'mislead' | 'delete-route'; readonly place: number }
  | { readonly kind: 'fault'; readonly fault: number; readonly action: number; readonly times: number }
  | { readonly kind: 'new-leader' };

const place = fc.integer({ min: 0, max: PLACES - 1 });
const DEED: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('join' as const), place }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('leave' as const, 'remake' as const), place }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('mislead' as const, 'delete-route' as const), place }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      fault: fc.integer({ min: 0, max: FAULTS.length - 1 }),
      action: fc.integer({ min: 0, max: ACTIONS.length - 1 }),
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('new-leader' as const) }) },
);

const cidrOf = (index: number): string => `172.16.${index}.0/24`;

/** No name is the beginning of another: faults of the API server find clients by it. */
const nameOf = (life: number): string => `ipamd-of-life-${life}-`;

class World {
  readonly #scene: RoutesScene;
  /** Name of the Node that is there by place; the network is that of the place. */
  readonly #nodes = new Map<number, string>();
  readonly #ipamds: RunningIpamd[] = [];
  #serial = 0;

  constructor(scene: RoutesScene) {
    this.#scene = scene;
  }

  async lead(): Promise<void> {
    // The one before is cut off without a word: it still holds the lock, and its calls are under way.
    this.#scene.shell.server.partition(nameOf(this.#ipamds.length));
    this.#ipamds.push(await this.#scene.start(nameOf(this.#ipamds.length + 1)));
  }

  async do(deed: Deed): Promise<void> {
    const { host } = this.#scene.shell;
    switch (deed.kind) {
      case 'join':
        if (!this.#nodes.has(deed.place)) await this.#join(deed.place);
        break;
      case 'leave':
        await this.#leave(deed.place);
        break;
      case 'remake':
        // Another machine gets the network at once, as where a person gives it.
        if (await this.#leave(deed.place)) await this.#join(deed.place);
        break;
      case 'mislead':
        this.#misleadOrAdd(cidrOf(deed.place));
        break;
      case 'delete-route':
        for (const route of this.#scene.routes()) {
          if (route.cidr === cidrOf(deed.place)) host.model.state.removeGlobalRoute(route);
        }
        break;
      case 'fault':
        host.faults.add({
          fault: FAULTS[deed.fault] ?? { kind: 'reset' },
          actions: [ACTIONS[deed.action] ?? ''],
          times: deed.times,
        });
        break;
      case 'new-leader':
        await this.lead();
    }
  }

  /** What is wrong with routes and conditions. */
  faults(): readonly string[] {
    const faults: string[] = [];
    for (let index = 0; index < PLACES; index++) {
      const gateways = this.#scene.routes().flatMap((one) => (one.cidr === cidrOf(index) ? [one.gatewayIp] : []));
      const name = this.#nodes.get(index);
      const wanted = name === undefined ? [] : [this.#scene.ipOf(name)];
      if (gateways.join() !== wanted.join()) faults.push(`${cidrOf(index)}: ${gateways} and not ${wanted}`);
      const network = name === undefined ? undefined : this.#scene.networkOf(name);
      if (name !== undefined && network !== 'False RouteCreated') faults.push(`${name}: ${network}`);
    }
    return faults;
  }

  async close(): Promise<void> {
    await this.#scene.shell.clock.run(Promise.all(this.#ipamds.map((ipamd) => ipamd.close())));
  }

  async #join(at: number): Promise<void> {
    this.#serial += 1;
    const name = `n${at}-${this.#serial}`;
    this.#nodes.set(at, name);
    await this.#scene.join(name, cidrOf(at));
  }

  async #leave(at: number): Promise<boolean> {
    const name = this.#nodes.get(at);
    if (name === undefined) return false;
    this.#nodes.delete(at);
    await this.#scene.leave(name, true);
    return true;
  }

  #misleadOrAdd(cidr: string): void {
    const { state } = this.#scene.shell.host.model;
    // Where the cloud allows it, it shares the packets with the right one.
    const others = state.spec.globalRouteEcmp === true ? [] : this.#scene.routes().filter((one) => one.cidr === cidr);
    for (const route of others) state.removeGlobalRoute(route);
    this.#scene.addRoute({ cidr, gatewayIp: '10.0.0.250' });
  }
}

async function live(t: ExecutionContext, deeds: readonly Deed[], waits: readonly number[], isEcmp: boolean) {
  const scene = await routesScene({ globalRouteEcmp: isEcmp });
  const { clock, host } = scene.shell;
  const foreign = [
    scene.addRoute({ cidr: '192.168.0.0/24', gatewayIp: '10.0.0.250' }),
    scene.addRoute({ cidr: '172.0.0.0/8', gatewayIp: '10.0.0.250' }),
    scene.addRoute({ cidr: '172.16.99.0/24', gatewayIp: '10.0.0.250', description: 'tke-eni cls-other001' }),
  ];
  const world = new World(scene);
  // Where no Node is, nothing is removed.
  await scene.join('steady', '172.16.50.0/24');
  await world.lead();
  for (const [index, deed] of deeds.entries()) {
    await world.do(deed);
    await clock.advance((waits[index % waits.length] ?? 1) * SECOND_MS);
  }
  host.faults.clear();
  await clock.advance(15 * MINUTE_MS);
  t.deepEqual(world.faults(), []);
  t.deepEqual(scene.routesOf('steady'), ['172.16.50.0/24']);
  for (const route of foreign) t.true(scene.routes().includes(route), `${route.cidr} is gone`);
  await world.close();
}

test('routes: law: each live Node ends with exactly one route, to itself; routes of others stay', async (t) => {
  await assertLaw(
    t,
    (inner) =>
      fc.asyncProperty(
        fc.array(DEED, { minLength: 15, maxLength: 40 }),
        fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 6 }),
        fc.boolean(),
        (deeds, waits, isEcmp) => live(inner, deeds, waits, isEcmp),
      ),
    { numRuns: IS_LONG ? 20 : 8, endOnFailure: true },
  );
});
