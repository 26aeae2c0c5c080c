import { recordOf, recordsOf } from '../../../runtime/json.ts';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import type { Machine } from '../machine.ts';
import type { Stage } from '../stage.ts';
import type { Story } from '../story.ts';
import { between } from '../streams.ts';
import type { World, WorldOptions } from '../world.ts';

const VPC = 'vpc-0000test';
const CLUSTER = 'cls-sim00001';
const NOBODY = '10.0.0.250';

/** Where routes are kept: the flags for it, the call that makes one, the tables that there are, and what the API keeps of whose one is. */
const KINDS = {
  global: { flags: [], call: 'CreateGlobalRoutes', tables: [], mark: `tke-eni ${CLUSTER}` },
  table: {
    flags: ['--route-tables=rtb-test0001,rtb-test0002'],
    call: 'CreateRoutes',
    tables: ['rtb-test0001', 'rtb-test0002'],
    mark: `tke-eni ${CLUSTER}`,
  },
  cluster: { flags: [], call: 'CreateClusterRoute', tables: [CLUSTER], mark: '' },
} as const;

type Kind = keyof typeof KINDS;

const cidrOf = (at: number): string => `172.16.${at}.0/24`;

/** Its nodes have blocks that people give, no ENIs, and routes that cloud-controller-manager keeps. */
function worldOf(kind: Kind): WorldOptions {
  return {
    cloud: { vpcId: VPC, subnets: [{ subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' }] },
    flags: ['--default-network=tke-bridge'],
    ccmFlags: [`--vpc-id=${VPC}`, `--routes=${kind}`, '--cluster-cidr=172.16.0.0/16', ...KINDS[kind].flags],
  };
}

function bookOf({ host }: World, kind: Kind) {
  return kind === 'table' ? host.model.state.routeTables : host.model.state.clusterRouteTables;
}

function addTables({ world }: Stage, kind: Kind): void {
  for (const table of KINDS[kind].tables) bookOf(world, kind).addTable(table, VPC);
}

/** Somebody makes a route, in each place. */
function addRoute({ world }: Stage, kind: Kind, cidr: string, description: string): void {
  const route = { cidr, gatewayIp: NOBODY, description };
  if (kind === 'global') world.host.model.state.addGlobalRoute({ vpcId: VPC, ...route });
  for (const table of KINDS[kind].tables) bookOf(world, kind).add(table, [route]);
}

/** Somebody deletes routes, in each place. */
function removeRoutes({ world }: Stage, kind: Kind, cidr: string): void {
  const { state } = world.host.model;
  for (const route of [...state.globalRoutes.values()]) if (route.cidr === cidr) state.removeGlobalRoute(route);
  for (const table of KINDS[kind].tables) {
    const book = bookOf(world, kind);
    const doomed = book.get(table).routes.filter((route) => route.cidr === cidr);
    book.remove(table, doomed);
  }
}

/** Routes of others. */
function others({ world }: Stage, kind: Kind): string {
  const tables = KINDS[kind].tables.flatMap((table) => bookOf(world, kind).get(table).routes);
  const all = [...world.host.model.state.globalRoutes.values(), ...tables];
  return all
    .flatMap(({ cidr, gatewayIp, description }) => (/of others/.test(description) ? [cidr, gatewayIp] : []))
    .join();
}

function isRouted({ world }: Stage, { name }: Machine): boolean {
  const node = world.objects('nodes').find(({ metadata }) => metadata.name === name);
  const all = recordsOf(recordOf(node?.['status'])['conditions']);
  return all.some(({ type, status }) => type === 'NetworkUnavailable' && status === 'False');
}

/** A block goes from one node to another, one is given back, and one is new. */
function routesIn(kind: Kind): Story {
  return {
    title: `routes in ${kind} are those of the Nodes`,
    world: worldOf(kind),
    tell: async (stage) => {
      addTables(stage, kind);
      await stage.join({ podCIDR: cidrOf(1) });
      const [moves, goes] = [await stage.join({ podCIDR: cidrOf(2) }), await stage.join({ podCIDR: cidrOf(3) })];
      await stage.until('all have routes', () => stage.world.machines.every((one) => isRouted(stage, one)));
      stage.begin();
      await stage.leave(moves);
      const moved = await stage.join({ podCIDR: cidrOf(2) });
      await stage.leave(goes);
      const comes = await stage.join({ podCIDR: cidrOf(4) });
      await stage.until('they have routes', () => [moved, comes].every((one) => isRouted(stage, one)));
    },
  };
}

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
const TURNS = 25;
const BLOCKS = 5;

/** Nodes come, go and change machines, people interfere, the cloud fails, calls arrive late, leaders die, by chance. */
function stormIn(kind: Kind): Story {
  return {
    title: `routes in ${kind} are those of the Nodes after ten minutes of faults and deaths`,
    world: worldOf(kind),
    tell: async (stage) => {
      const draw = stage.world.streams.of('routes in a storm');
      const below = (count: number): number => Math.floor(draw() * count);
      const nodes = new Map<string, Machine>();
      addTables(stage, kind);
      for (const cidr of ['192.168.0.0/24', '172.0.0.0/8']) addRoute(stage, kind, cidr, 'of others');
      if (kind !== 'cluster') addRoute(stage, kind, cidrOf(99), 'tke-eni cls-other001 of others');
      const before = others(stage, kind);
      await stage.join({ podCIDR: cidrOf(50) });
      stage.begin();
      for (const fault of FAULTS) stage.cloudFault({ fault, actions: ['*Route*'], probability: 0.02 });
      for (let turn = 0; turn < TURNS; turn++) {
        const cidr = cidrOf(1 + below(BLOCKS));
        const machine = nodes.get(cidr);
        const deed = draw();
        if (deed < 0.2) removeRoutes(stage, kind, cidr);
        if (deed < 0.1) addRoute(stage, kind, cidr, KINDS[kind].mark);
        else if (deed < 0.3) stage.killLeader('ccm');
        else if (deed < 0.4) stage.stray(KINDS[kind].call, between(draw, [1, 90]), 'ccm');
        else if (machine !== undefined) {
          await stage.leave(machine);
          nodes.delete(cidr);
        }
        if (deed > 0.6 && !nodes.has(cidr)) nodes.set(cidr, await stage.join({ podCIDR: cidr }));
        await stage.seconds(between(draw, [0, 40]));
      }
      stage.expect('those of others stay', others(stage, kind) === before);
    },
  };
}

export const [globalRoutes, tableRoutes, clusterRoutes] = [routesIn('global'), routesIn('table'), routesIn('cluster')];

/** The same, by chance. */
export const ROUTE_STORMS = [stormIn('global'), stormIn('table'), stormIn('cluster')] as const;
