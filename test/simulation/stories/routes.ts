import type { Fault } from '../../../sim/vpc/api/faults.ts';
import type { Machine } from '../machine.ts';
import type { Stage } from '../stage.ts';
import type { Story } from '../story.ts';
import { between } from '../streams.ts';
import type { World, WorldOptions } from '../world.ts';

const VPC = 'vpc-0000test';

/** Its nodes have blocks that people give, no ENIs, and routes that ipamd keeps. */
function worldOf(cloud: { readonly globalRouteEcmp?: boolean; readonly globalRoutes?: number } = {}): WorldOptions {
  const subnets = [{ subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' }];
  return {
    cloud: { vpcId: VPC, subnets, ...cloud },
    flags: ['--cluster-cidr=172.16.0.0/16', '--gr-routes=ipamd', '--default-network=tke-bridge'],
  };
}

const cidrOf = (at: number): string => `172.16.${at}.0/24`;

/** Nodes join with blocks, and get their routes. */
async function joinAll(stage: Stage, count: number): Promise<readonly Machine[]> {
  const machines: Machine[] = [];
  for (let at = 1; at <= count; at++) machines.push(await stage.join({ podCIDR: cidrOf(at) }));
  await stage.until('each has a route', () => routesIn(stage.world).length === count);
  return machines;
}

function routesIn({ host }: World) {
  return [...host.model.state.globalRoutes.values()].filter(({ description }) => !/of others/.test(description));
}

/** Somebody makes a route. */
function addRoute({ world }: Stage, cidr: string, description = ''): void {
  world.host.model.state.addGlobalRoute({ vpcId: VPC, cidr, gatewayIp: '10.0.0.250', description });
}

/** Somebody deletes routes. */
function removeRoutes({ world }: Stage, cidr: string): void {
  for (const route of routesIn(world)) if (route.cidr === cidr) world.host.model.state.removeGlobalRoute(route);
}

/** Somebody makes and deletes routes, where the cloud would let two lead from one network. */
export const wrongRoutes: Story = {
  title: 'wrong routes are moved, lost ones come back, and those of others stay',
  world: worldOf({ globalRouteEcmp: true }),
  tell: async (stage) => {
    addRoute(stage, '192.168.0.0/24', 'of others');
    addRoute(stage, '172.16.99.0/24', 'tke-eni cls-other001 of others');
    addRoute(stage, cidrOf(1));
    const calls = () =>
      stage.world.host.seen.map(({ action }) => action).filter((one) => /^(?:Cre|Del)\w+Routes$/.test(one));
    stage.begin();
    await joinAll(stage, 1);
    await stage.seconds(10);
    stage.expect('it never led to two nodes', calls().join() === 'DeleteGlobalRoutes,CreateGlobalRoutes');
    removeRoutes(stage, cidrOf(1));
    await stage.until('it is back', () => routesIn(stage.world).length === 1);
    stage.expect('two are of others', stage.world.host.model.state.globalRoutes.size === 3);
  },
};

/** Three routes for six nodes, until the quota is raised. */
export const routeQuota: Story = {
  title: 'a quota of routes is told, and asked for seldom',
  world: worldOf({ globalRoutes: 3 }),
  tell: async (stage) => {
    stage.begin();
    for (let at = 1; at <= 6; at++) await stage.join({ podCIDR: cidrOf(at) });
    await stage.minutes(1);
    stage.expect('three have one', routesIn(stage.world).length === 3);
    stage.expect(
      'the others are told why',
      stage.events('FailedToCreateRoute').some((text) => /CreateGlobalRoutes: Code=LimitExceeded/.test(text)),
    );
    const before = stage.sent('CreateGlobalRoutes');
    await stage.minutes(20);
    stage.expect('calls are few', stage.sent('CreateGlobalRoutes') - before <= 8);
    stage.world.host.model.state.globalRouteQuota = 100;
    await stage.until('all have one', () => routesIn(stage.world).length === 6, 720_000);
  },
};

/** A new leader gets a description of before the nodes joined; then lists of Nodes are empty, and then no Node is left. */
export const staleRoutes: Story = {
  title: 'a description of the past costs no node its route, nor do lists that are empty',
  world: worldOf(),
  tell: async (stage) => {
    const machines = await joinAll(stage, 3);
    await stage.seconds(10);
    stage.begin();
    const fault = { kind: 'stale', ms: 120_000 } as const;
    stage.cloudFault({ fault, actions: ['DescribeGlobalRoutes'], times: 1 });
    stage.killLeader();
    await stage.minutes(2);
    stage.expect('no Node is said to have none', stage.events('FailedToCreateRoute').length === 0);
    const heal = stage.apiFault({ resources: ['nodes'], action: { kind: 'empty-list' } });
    stage.world.api.cutWatches('ipamd-*');
    await stage.minutes(10);
    stage.expect('all are there', routesIn(stage.world).length === 3);
    heal();
    stage.world.api.cutWatches('ipamd-*');
    for (const machine of machines) await stage.leave(machine);
    await stage.minutes(10);
    stage.expect('without any Node none goes', routesIn(stage.world).length === 3);
    await stage.join({ podCIDR: cidrOf(9) });
  },
};

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
const TURNS = 25;
const PLACES = 6;

/** Nodes come, go and change machines, people interfere, the cloud fails, leaders die, by chance. */
export const routesInStorm: Story = {
  title: 'each node ends with one route, to itself, through faults and deaths',
  world: worldOf({ globalRouteEcmp: true }),
  tell: async (stage) => {
    const draw = stage.world.streams.of('routes in a storm');
    const below = (count: number): number => Math.floor(draw() * count);
    const nodes = new Map<string, Machine>();
    addRoute(stage, '172.0.0.0/8', 'of others');
    await stage.join({ podCIDR: '172.16.50.0/24' });
    stage.begin();
    for (const fault of FAULTS) stage.cloudFault({ fault, actions: ['*'], probability: 0.04 });
    for (let turn = 0; turn < TURNS; turn++) {
      const cidr = cidrOf(1 + below(PLACES));
      const machine = nodes.get(cidr);
      const deed = draw();
      if (deed < 0.2) removeRoutes(stage, cidr);
      else if (deed < 0.35) addRoute(stage, cidr);
      else if (deed < 0.45) stage.killLeader();
      else if (machine !== undefined) {
        await stage.leave(machine);
        nodes.delete(cidr);
      }
      // Another machine gets the block at once, as where a person gives it.
      if (deed > 0.6) nodes.set(cidr, await stage.join({ podCIDR: cidr }));
      await stage.seconds(between(draw, [0, 40]));
    }
  },
};
