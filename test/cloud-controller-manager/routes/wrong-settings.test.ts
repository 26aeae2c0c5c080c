/** A setting that is wrong takes no Node and no load balancer out of service that works without it. */
import test from 'ava';
import { ServiceWorld } from '../services/service-world.ts';
import { CLUSTER_CIDR, OWN, RouteWorld } from './route-world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const OTHER_VPC = 'vpc-00000009';

/** A cluster of two Nodes with routes, whose next leader has another setting. */
async function started(...flags: readonly string[]): Promise<RouteWorld> {
  const world = await RouteWorld.start(...flags);
  await world.join('n1', '172.16.1.0/24');
  await world.join('n2', '172.16.2.0/24');
  await world.advance(10 * SECOND_MS);
  return world;
}

const networksOf = (world: RouteWorld, ...names: readonly string[]) => names.map((name) => world.networkOf(name));
const OPEN = 'False RouteCreated';
const CLOSED = 'True NoRouteCreated';

test('a wrong --cluster-cidr: Nodes whose routes lead to them stay open, and are told; one without a route is closed', async (t) => {
  const world = await started();
  const [before] = [world.routes()];
  await world.replace('--cluster-cidr=10.200.0.0/16');
  await world.join('n3', '172.16.3.0/24');
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2', 'n3'), [OPEN, OPEN, CLOSED]);
  t.deepEqual(world.routes(), before);
  t.deepEqual(world.world.scene.events('RouteNotKept').toSorted(), [
    'podCIDR 172.16.1.0/24 is in no network of --cluster-cidr, 10.200.0.0/16. Its route leads to the node. The node stays in service, but nothing keeps that route: add the network to --cluster-cidr',
    'podCIDR 172.16.2.0/24 is in no network of --cluster-cidr, 10.200.0.0/16. Its route leads to the node. The node stays in service, but nothing keeps that route: add the network to --cluster-cidr',
  ]);
  t.regex(world.world.scene.events('FailedToCreateRoute').join('\n'), /^podCIDR 172\.16\.3\.0\/24 is in no network/);
  // It is not kept, and the Node is closed once it is gone.
  world.removeRoutes('172.16.1.0/24');
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2'), [CLOSED, OPEN]);
  world.addRoute('172.16.1.0/24', '10.0.0.250', 'by hand');
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2'), [CLOSED, OPEN]);
  await world.replace(`--cluster-cidr=${CLUSTER_CIDR}`);
  world.removeRoutes('172.16.1.0/24');
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2', 'n3'), [OPEN, OPEN, OPEN]);
  await world.stop();
});

test('a wrong --clusterid: Nodes whose routes lead to them stay open, and the event names the cluster of the routes', async (t) => {
  const world = await started();
  const before = world.routes();
  await world.replace('--clusterid=cls-wrong001');
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2'), [OPEN, OPEN]);
  t.deepEqual(world.routes(), before);
  t.regex(
    world.world.scene.events('RouteNotKept').join('\n'),
    /^the VPC leads 172\.16\.1\.0\/24 to the node by route gr-\w+ of cluster cls-routes01\. The node stays in service, but nothing keeps that route: set --clusterid=cls-routes01 if that is this cluster/,
  );
  await world.stop();
});

test('a wrong --vpc-id: where all instances of Nodes are in another VPC, no route is made or said to be missing', async (t) => {
  const world = await started();
  const before = world.routes();
  world.world.scene.host.forget();
  await world.replace(`--vpc-id=${OTHER_VPC}`);
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2'), [OPEN, OPEN]);
  t.deepEqual(world.routes(), before);
  t.deepEqual(
    world.world.scene.host.seen.map(({ action }) => action).filter((action) => /Route/.test(action)),
    [],
  );
  t.deepEqual(world.world.scene.events('ConfigInvalid'), [
    `--vpc-id is ${OTHER_VPC}, and no instance of a Node is in it: most are in vpc-00000001. Correct it, or leave it out`,
  ]);
  await world.replace();
  await world.join('n3', '172.16.3.0/24');
  await world.advance(20 * SECOND_MS);
  t.is(world.networkOf('n3'), OPEN);
  await world.stop();
});

for (const [wrong, code] of [
  ['another VPC', 'InvalidParameterValue'],
  ['no right', 'UnauthorizedOperation'],
  ['no room', 'LimitExceeded'],
] as const)
  test(`a wrong --route-tables, ${wrong}: a table that never led to a Node closes none that is open`, async (t) => {
    const world = await started('--routes=table', '--route-tables=rtb-test0001');
    const { host } = world.world.scene;
    const book = host.model.state.routeTables;
    book.addTable('rtb-wrong001', OTHER_VPC);
    host.faults.add({ fault: { kind: 'error', code }, actions: ['CreateRoutes'] });
    await world.replace('--route-tables=rtb-wrong001');
    await world.join('n3', '172.16.3.0/24');
    await world.advance(3 * MINUTE_MS);
    t.deepEqual(networksOf(world, 'n1', 'n2', 'n3'), [OPEN, OPEN, CLOSED]);
    t.regex(world.world.scene.events('RouteNotKept').join('\n'), /rtb-wrong001.*--route-tables/);
    await world.stop();
  });

test('the right table: an open Node whose route went, and cannot be made, is closed', async (t) => {
  const world = await started('--routes=table', '--route-tables=rtb-test0001');
  await world.replace();
  await world.advance(MINUTE_MS);
  world.world.scene.host.faults.add({
    fault: { kind: 'error', code: 'UnauthorizedOperation' },
    actions: ['CreateRoutes'],
  });
  for (const cidr of ['172.16.1.0/24', '172.16.2.0/24']) world.removeRoutes(cidr);
  await world.advance(3 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2'), [CLOSED, CLOSED]);
  t.is(world.routes().filter(({ description }) => description === OWN).length, 0);
  await world.stop();
});

test('a wrong --vpc-id: load balancers keep their targets, and the event of the lock names both', async (t) => {
  const world = await ServiceWorld.start();
  for (const name of ['n1', 'n2']) await world.join(name);
  await world.create('web');
  await world.advance(30 * SECOND_MS);
  const targets = () => world.listeners()['TCP/80'] ?? [];
  const before = targets();
  t.is(before.length, 2);
  await world.replace(`--vpc-id=${OTHER_VPC}`);
  await world.advance(3 * MINUTE_MS);
  t.deepEqual(targets(), before);
  t.regex(world.world.scene.events('ConfigInvalid').join(), /--vpc-id is vpc-00000009.*vpc-00000001/);
  await world.stop();
});
