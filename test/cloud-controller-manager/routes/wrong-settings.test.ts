/** A setting that is wrong takes no Node and no load balancer out of service that works without it. */
import test from 'ava';
import { NODES } from '../../../kube/resource-types.ts';
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

test('a wrong --vpc-id: a Node whose route is seen in the VPC of the instances stays open', async (t) => {
  const world = await started();
  const before = world.routes();
  await world.replace(`--vpc-id=${OTHER_VPC}`);
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2'), [OPEN, OPEN]);
  t.deepEqual(world.routes(), before);
  t.regex(
    world.world.scene.events('RouteNotKept').join('\n'),
    /A route in vpc-00000001 leads to it, none in vpc-00000009\. .*: correct --vpc-id$/m,
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
  test(`a wrong --route-tables, ${wrong}: a Node whose route is in another table of the VPC stays open, also for the next leader`, async (t) => {
    const world = await started('--routes=table', '--route-tables=rtb-test0001');
    const { host } = world.world.scene;
    const book = host.model.state.routeTables;
    book.addTable('rtb-wrong001', OTHER_VPC);
    host.faults.add({ fault: { kind: 'error', code }, actions: ['CreateRoutes'] });
    await world.replace('--route-tables=rtb-wrong001');
    await world.advance(20 * SECOND_MS);
    await world.replace('--route-tables=rtb-wrong001');
    await world.join('n3', '172.16.3.0/24');
    await world.advance(3 * MINUTE_MS);
    t.deepEqual(networksOf(world, 'n1', 'n2', 'n3'), [OPEN, OPEN, CLOSED]);
    t.regex(world.world.scene.events('RouteNotKept').join('\n'), /rtb-wrong001.*--route-tables/);
    await world.stop();
  });

test('a wrong --route-tables that takes some routes: the Nodes above its quota stay open, also for the next leader', async (t) => {
  const world = await started('--routes=table', '--route-tables=rtb-test0001');
  await world.join('n3', '172.16.3.0/24');
  await world.advance(10 * SECOND_MS);
  world.world.scene.host.model.state.routeTables.addTable('rtb-wrong001', 'vpc-00000001');
  for (let leader = 1; leader <= 3; leader += 1) {
    await world.replace('--route-tables=rtb-wrong001', '--route-quota=1');
    await world.advance(3 * MINUTE_MS);
    t.deepEqual(networksOf(world, 'n1', 'n2', 'n3'), [OPEN, OPEN, OPEN], `leader ${leader}`);
  }
  // The route of another table is what keeps it open.
  world.removeRoutes('172.16.3.0/24');
  await world.advance(3 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2', 'n3'), [OPEN, OPEN, CLOSED]);
  await world.stop();
});

test('an ENI Node that gets a podCIDR is closed while its first route is refused', async (t) => {
  const world = await RouteWorld.start();
  const { scene } = world.world;
  await world.join('n1', undefined, { 'tke.cloud.tencent.com/eni-ip': '10' });
  await world.advance(2 * MINUTE_MS);
  t.is(world.networkOf('n1'), OPEN);
  scene.host.faults.add({ fault: { kind: 'error', code: 'LimitExceeded' }, actions: ['CreateGlobalRoutes'] });
  const body = { spec: { podCIDR: '172.16.1.0/24', podCIDRs: ['172.16.1.0/24'] } };
  await scene.clock.run(scene.admin.patch(NODES, { name: 'n1' }, { kind: 'merge', body }));
  await world.advance(5 * MINUTE_MS);
  t.is(world.networkOf('n1'), CLOSED);
  t.deepEqual(scene.events('RouteNotKept'), []);
  t.regex(scene.events('FailedToCreateRoute').join('\n'), /Code=LimitExceeded/);
  await world.stop();
});

test('a refusal that lasts is one event of each Node, with its reason', async (t) => {
  const world = await started('--routes=table', '--route-tables=rtb-test0001');
  const { host, events } = world.world.scene;
  host.model.state.routeTables.addTable('rtb-wrong001', OTHER_VPC);
  host.faults.add({ fault: { kind: 'error', code: 'LimitExceeded' }, actions: ['CreateRoutes'] });
  await world.replace('--route-tables=rtb-wrong001');
  await world.join('n3', '172.16.3.0/24');
  await world.advance(30 * MINUTE_MS);
  const told = ['RouteNotKept', 'FailedToCreateRoute'].map((reason) => events(reason));
  t.deepEqual(
    told.map(({ length }) => length),
    [2, 1],
  );
  for (const message of told.flat()) t.regex(message, /Code=LimitExceeded/);
  await world.stop();
});

test('a disabled route is no route: the Node is closed and told, and nothing enables it', async (t) => {
  const world = await started('--routes=table', '--route-tables=rtb-test0001');
  const book = world.world.scene.host.model.state.routeTables;
  const [route] = book.get('rtb-test0001').routes.filter(({ cidr }) => cidr === '172.16.1.0/24');
  const setDisabled = (isDisabled: boolean): void => {
    world.removeRoutes('172.16.1.0/24');
    book.add('rtb-test0001', [{ ...route, cidr: '172.16.1.0/24', gatewayIp: world.ipOf('n1'), isDisabled }]);
  };
  setDisabled(true);
  await world.advance(3 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2'), [CLOSED, OPEN]);
  t.regex(
    world.world.scene.events('FailedToCreateRoute').join('\n'),
    /^route \d+ to 172\.16\.1\.0\/24 is disabled; enable it/,
  );
  t.is(book.get('rtb-test0001').routes.filter(({ isDisabled }) => isDisabled === true).length, 1);
  // Nor is it one under a setting that is wrong.
  await world.replace('--cluster-cidr=10.200.0.0/16');
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2'), [CLOSED, OPEN]);
  await world.replace();
  setDisabled(false);
  await world.advance(2 * MINUTE_MS);
  t.deepEqual(networksOf(world, 'n1', 'n2'), [OPEN, OPEN]);
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
