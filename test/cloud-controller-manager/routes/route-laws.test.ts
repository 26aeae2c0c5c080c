/**
 * Nodes come, go and change machines, people interfere, a fifth of the calls to the cloud fails, processes die at their
 * calls: in the end the routes are those of the podCIDRs, and nothing without the mark was touched.
 */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { assertLaw } from '../../support/law.ts';
import { OWN, RouteWorld } from './route-world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const PLACES = 5;
const NOBODY = '10.0.0.250';

/** Each of these meets a share of the calls that changes or reads routes, together a fifth. */
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
  { kind: 'partial' },
];
const FAULT_SHARE = 0.2;
const ACTIONS = [
  ...['CreateGlobalRoutes', 'DeleteGlobalRoutes', 'DescribeGlobalRoutes', 'DescribeUsedIpAddress'],
  ...['CreateRoutes', 'ReplaceRoutes', 'DeleteRoutes', 'DescribeRouteTables'],
  ...['CreateClusterRoute', 'DeleteClusterRoute', 'DescribeClusterRoutes'],
];

const KINDS = [
  ['global', ['--routes=global']],
  ['table', ['--routes=table', '--route-tables=rtb-test0001,rtb-test0002']],
  ['cluster', ['--routes=cluster']],
] as const;
type Kind = (typeof KINDS)[number][0];

type Deed =
  | { readonly kind: 'join' | 'leave' | 'remake' | 'mislead' | 'delete-route'; readonly place: number }
  | { readonly kind: 'new-process' }
  | { readonly kind: 'late-call'; readonly lateMs: number }
  | {
      readonly kind: 'die';
      readonly of: 'read' | 'change';
      readonly inCalls: number;
      readonly moment: 'before' | 'after';
    };

const place = fc.integer({ min: 0, max: PLACES - 1 });
const DEED: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('join' as const), place }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('leave' as const, 'remake' as const), place }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('mislead' as const, 'delete-route' as const), place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('new-process' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('late-call' as const),
      lateMs: fc.integer({ min: SECOND_MS, max: 90 * SECOND_MS }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('die' as const),
      // Calls to the cloud count as reads, whatever they do.
      of: fc.constantFrom('read' as const, 'read' as const, 'change' as const),
      inCalls: fc.integer({ min: 1, max: 12 }),
      moment: fc.constantFrom('before' as const, 'after' as const),
    }),
  },
);

const cidrOf = (index: number): string => `172.16.${index}.0/24`;

class Life {
  readonly #world: RouteWorld;
  readonly #kind: Kind;
  /** Name of the Node that is there by place; the network is that of the place. */
  readonly #nodes = new Map<number, string>();
  #serial = 0;

  constructor(world: RouteWorld, kind: Kind) {
    this.#world = world;
    this.#kind = kind;
  }

  async do(deed: Deed): Promise<void> {
    const { lives, scene } = this.#world.world;
    switch (deed.kind) {
      case 'join':
        if (!this.#nodes.has(deed.place)) await this.#join(deed.place);
        break;
      case 'leave':
        await this.#leave(deed.place);
        break;
      case 'remake':
        if (await this.#leave(deed.place)) await this.#join(deed.place);
        break;
      case 'mislead':
        this.#world.removeRoutes(cidrOf(deed.place));
        for (const one of this.#world.places) {
          this.#world.addRoute(cidrOf(deed.place), NOBODY, this.#kind === 'cluster' ? '' : OWN, one);
        }
        break;
      case 'delete-route':
        this.#world.removeRoutes(cidrOf(deed.place));
        break;
      case 'new-process':
        await this.#world.replace();
        break;
      case 'late-call':
        this.#delayChange(deed.lateMs);
        break;
      case 'die':
        lives.crash = { of: deed.of, at: lives.made[deed.of] + deed.inCalls, moment: deed.moment };
    }
    // A kubelet of the control plane starts the Pod again.
    if (lives.isOver) await this.#world.replace();
    scene.host.model.advance(scene.clock.nowMs());
  }

  /** What is wrong with routes and conditions. */
  faults(): readonly string[] {
    const faults: string[] = [];
    const routes = this.#world.routes();
    for (let index = 0; index < PLACES; index++) {
      const name = this.#nodes.get(index);
      const wanted = name === undefined ? [] : [this.#world.ipOf(name)];
      for (const at of this.#world.places) {
        const found = routes.flatMap((one) => (one.place === at && one.cidr === cidrOf(index) ? [one.gatewayIp] : []));
        if (found.join() !== wanted.join()) faults.push(`${at} ${cidrOf(index)}: ${found} and not ${wanted}`);
      }
      const network = name === undefined ? undefined : this.#world.networkOf(name);
      if (name !== undefined && network !== 'False RouteCreated') faults.push(`${name}: ${network}`);
    }
    return faults;
  }

  async #join(at: number): Promise<void> {
    this.#serial += 1;
    const name = `n${at}x${this.#serial}`;
    this.#nodes.set(at, name);
    await this.#world.join(name, cidrOf(at));
  }

  async #leave(at: number): Promise<boolean> {
    const name = this.#nodes.get(at);
    if (name === undefined) return false;
    this.#nodes.delete(at);
    await this.#world.leave(name);
    return true;
  }

  /** The next change of a route arrives late, whatever has become of who made it. */
  #delayChange(lateMs: number): void {
    const { host, clock } = this.#world.world.scene;
    host.gate = async ({ action, moment }) => {
      if (moment !== 'before' || !/^(Create|Delete|Replace).*Routes?$/.test(action)) return 'go';
      host.gate = undefined;
      await clock.sleep(lateMs);
      return 'go';
    };
  }
}

/** Routes that nobody of this cluster may touch: by the mark, or where there is none by the table and the network. */
function addForeign(world: RouteWorld, kind: Kind): void {
  for (const at of world.places) {
    world.addRoute('192.168.0.0/24', NOBODY, kind === 'cluster' ? '' : OWN, at);
    world.addRoute('172.0.0.0/8', NOBODY, '', at);
    if (kind === 'cluster') continue;
    world.addRoute('172.16.99.0/24', NOBODY, 'tke-eni cls-other001', at);
    world.addRoute('172.16.98.0/24', NOBODY, 'by hand', at);
  }
  const { routeTables, clusterRouteTables } = world.world.scene.host.model.state;
  for (const [book, table] of [[routeTables, 'rtb-other000'] as const, [clusterRouteTables, 'cls-other001'] as const]) {
    book.addTable(table, 'vpc-00000001');
    book.add(table, [{ cidr: cidrOf(0), gatewayIp: NOBODY, description: OWN }]);
  }
}

function foreignOf(world: RouteWorld): readonly unknown[] {
  const { routeTables, clusterRouteTables } = world.world.scene.host.model.state;
  const inPlaces = world.routes().filter(({ cidr }) => !/^172\.16\.([0-4]|50)\.0\/24$/.test(cidr));
  return [...inPlaces, ...routeTables.get('rtb-other000').routes, ...clusterRouteTables.get('cls-other001').routes];
}

async function live(
  t: ExecutionContext,
  [kind, flags]: (typeof KINDS)[number],
  deeds: readonly Deed[],
  waits: readonly number[],
): Promise<void> {
  const world = await RouteWorld.start('--controllers=*', ...flags);
  const { host } = world.world.scene;
  // Where no Node is, nothing is removed.
  await world.join('steady', '172.16.50.0/24');
  addForeign(world, kind);
  const foreign = foreignOf(world);
  for (const fault of FAULTS) {
    host.faults.add({ fault, actions: ACTIONS, probability: FAULT_SHARE / FAULTS.length });
  }
  const life = new Life(world, kind);
  for (const [index, deed] of deeds.entries()) {
    await life.do(deed);
    await world.advance((waits[index % waits.length] ?? 1) * SECOND_MS);
    if (world.world.lives.isOver) await world.replace();
  }
  host.faults.clear();
  world.world.lives.crash = undefined;
  await world.advance(15 * MINUTE_MS);
  t.deepEqual(life.faults(), []);
  t.deepEqual(
    world.routes().flatMap(({ cidr, gatewayIp }) => (cidr === '172.16.50.0/24' ? [gatewayIp] : [])),
    world.places.map(() => world.ipOf('steady')),
  );
  t.deepEqual(foreignOf(world), foreign);
  await world.stop();
}

for (const one of KINDS) {
  test(`node-route-controller: law: --routes=${one[0]}: the routes are those of the podCIDRs after any faults; nothing without the mark is touched`, async (t) => {
    await assertLaw(
      t,
      (inner) =>
        fc.asyncProperty(
          fc.array(DEED, { minLength: 10, maxLength: 30 }),
          fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 6 }),
          (deeds, waits) => live(inner, one, deeds, waits),
        ),
      { numRuns: 2, endOnFailure: true },
    );
  });
}
