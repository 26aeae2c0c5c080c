import test from 'ava';
import { CLUSTER_CIDR, OWN, RouteWorld } from './route-world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

test('node-route-controller: each Node gets its route within seconds, and the condition; without a podCIDR only with ENI Pods', async (t) => {
  const world = await RouteWorld.start();
  const ip = await world.join('n1', '172.16.1.0/24');
  await world.join('n2', undefined, { 'tke.cloud.tencent.com/eni-ip': '10' });
  await world.join('n3');
  await world.advance(6 * SECOND_MS);
  t.like(world.routes(), [{ cidr: '172.16.1.0/24', gatewayIp: ip, description: OWN }]);
  t.deepEqual(
    ['n1', 'n2', 'n3'].map((name) => world.networkOf(name)),
    [
      'False RouteCreated',
      'False RouteCreated',
      // It may get a podCIDR yet.
      'True NoRouteCreated',
    ],
  );
  t.false(world.world.node('n1')?.isUninitialized);
  const metrics = await world.metrics();
  t.regex(metrics, /_controller\{controller="node-route-controller",state="running"\} 1/);
  t.regex(metrics, /\nroute_controller_route_sync_total [1-9]/);
  t.regex(metrics, /_cluster_routes\{state="right"\} 1/);
  await world.stop();
});

test('node-route-controller: a route without its mark is never touched; one in the way is an event of the Node', async (t) => {
  const world = await RouteWorld.start();
  const foreign = [
    ['172.16.1.0/24', '10.0.0.250', ''],
    ['172.16.9.0/24', '10.0.0.250', 'by hand'],
    ['192.168.0.0/24', '10.0.0.250', OWN],
    ['172.16.8.0/24', '10.0.0.250', 'tke-eni cls-other001'],
  ] as const;
  for (const [cidr, ip, description] of foreign) world.addRoute(cidr, ip, description);
  await world.join('n1', '172.16.1.0/24');
  await world.advance(5 * MINUTE_MS);
  t.deepEqual(
    world.routes().map(({ cidr, gatewayIp, description }) => [cidr, gatewayIp, description]),
    foreign as never,
  );
  t.is(world.networkOf('n1'), 'True NoRouteCreated');
  const [event = ''] = world.world.scene.events('FailedToCreateRoute');
  t.regex(
    event,
    /the VPC leads 172\.16\.1\.0\/24 to 10\.0\.0\.250 by route gr-.*none of this cluster; delete that route/,
  );
  world.removeRoutes('172.16.1.0/24');
  await world.advance(2 * MINUTE_MS);
  t.is(world.networkOf('n1'), 'False RouteCreated');
  await world.stop();
});

test('node-route-controller: networks that overlap, or lie outside of the cluster, are an event each', async (t) => {
  const world = await RouteWorld.start();
  await world.join('n1', '172.16.1.0/24');
  await world.advance(10 * SECOND_MS);
  await world.join('n2', '172.16.0.0/23');
  await world.join('n3', '10.99.0.0/24');
  await world.join('n4', '172.16.1.0/24');
  await world.advance(10 * SECOND_MS);
  t.deepEqual(
    world.routes().map(({ cidr }) => cidr),
    ['172.16.1.0/24'],
  );
  t.deepEqual(world.world.scene.events('FailedToCreateRoute').toSorted(), [
    `podCIDR 10.99.0.0/24 is in no network of --cluster-cidr, ${CLUSTER_CIDR}; add it there, or delete the Node so that it gets another`,
    'podCIDR 172.16.0.0/23 overlaps 172.16.1.0/24 of node n1; delete one of the two Nodes, so that it gets another',
    'podCIDR 172.16.1.0/24 is that of node n1 too; it leads there',
  ]);
  await world.stop();
});

test('node-route-controller: no call is made that would exceed the quota; its Node is told, and gets its route when there is room', async (t) => {
  const world = await RouteWorld.start('--route-quota=2');
  for (const index of [1, 2, 3]) await world.join(`n${index}`, `172.16.${index}.0/24`);
  await world.advance(10 * SECOND_MS);
  const { host } = world.world.scene;
  t.is(host.counts()['CreateGlobalRoutes'], 1);
  t.is(world.routes().length, 2);
  const events = world.world.scene.events('FailedToCreateRoute');
  t.is(events.length, 1);
  t.regex(events[0] ?? '', /^no route to 172.16.3.0\/24: it would exceed the quota of 2 routes; have the quota raised/);
  await world.leave('n1');
  await world.advance(3 * MINUTE_MS);
  t.deepEqual(
    ['n2', 'n3'].map((name) => world.networkOf(name)),
    ['False RouteCreated', 'False RouteCreated'],
  );
  await world.stop();
});

test('node-route-controller: --routes=table: a Node has a route where all tables lead to it; while one cannot be read nothing is said', async (t) => {
  const world = await RouteWorld.start('--routes=table', '--route-tables=rtb-test0001,rtb-test0002');
  const { host } = world.world.scene;
  const [second = '', other] = world.places;
  world.addRoute('172.16.1.0/24', 'nat-00000001', 'by hand', second);
  await world.join('n1', '172.16.1.0/24');
  await world.join('n2', '172.16.2.0/24');
  await world.advance(10 * SECOND_MS);
  t.deepEqual(
    ['n1', 'n2'].map((name) => world.networkOf(name)),
    ['True NoRouteCreated', 'False RouteCreated'],
  );
  t.regex(
    world.world.scene.events('FailedToCreateRoute').join(),
    /leads 172\.16\.1\.0\/24 to nat-00000001 by route \d+, which is none of this cluster/,
  );
  t.is(world.routes().filter(({ place }) => place === second).length, 2);
  host.model.state.routeTables.tables.delete(second);
  await world.advance(20 * SECOND_MS);
  await world.join('n3', '172.16.3.0/24');
  await world.advance(3 * MINUTE_MS);
  t.is(world.networkOf('n3'), 'True NoRouteCreated', 'as it was when it was initialised');
  t.deepEqual(
    world.routes().map(({ place, cidr }) => [place, cidr]),
    ['172.16.1.0/24', '172.16.2.0/24', '172.16.3.0/24'].map((cidr) => [other, cidr]),
    'the other table is kept',
  );
  t.is(world.networkOf('n2'), 'False RouteCreated');
  t.deepEqual(world.world.scene.events('FailedToCreateRoute').length, 1);
  t.regex(await world.metrics(), /_cluster_route_list_failures_total [1-9]/);
  await world.stop();
});

test('node-route-controller: many routes are created in a call; one that is refused delays none of the others', async (t) => {
  const world = await RouteWorld.start('--routes=table', '--route-tables=rtb-test0001');
  const { host } = world.world.scene;
  host.model.state.routeTables.quota = 500;
  const [place = ''] = world.places;
  await world.advance(MINUTE_MS);
  // Descriptions lack the one that is in the way.
  host.faults.add({ fault: { kind: 'stale', ms: 50_000 }, actions: ['DescribeRouteTables'] });
  world.addRoute('172.16.40.0/24', '10.0.0.250', 'by hand', place);
  for (let index = 0; index < 99; index++) await world.join(`n${index}`, `172.16.${index}.0/24`);
  await world.advance(20 * SECOND_MS);
  t.is(world.routes().filter(({ description }) => description === OWN).length, 98);
  t.true((host.counts()['CreateRoutes'] ?? 0) <= 2 + 2 * Math.ceil(Math.log2(100)));
  t.is(world.networkOf('n40'), 'True NoRouteCreated');
  t.is(world.networkOf('n41'), 'False RouteCreated');
  await world.stop();
});

test('node-route-controller: --routes=table: the cloud says the quota before it is exceeded, and again when it may have been raised', async (t) => {
  const world = await RouteWorld.start('--routes=table', '--route-tables=rtb-test0001');
  const { host } = world.world.scene;
  host.model.state.routeTables.quota = 60;
  for (let index = 0; index < 40; index++) await world.join(`n${index}`, `172.16.${index}.0/24`);
  await world.advance(10 * SECOND_MS);
  t.is(host.counts()['DescribeVpcLimits'], undefined, 'every table takes fifty');
  for (let index = 40; index < 65; index++) await world.join(`n${index}`, `172.16.${index}.0/24`);
  await world.advance(10 * SECOND_MS);
  t.is(world.routes().length, 60);
  t.deepEqual(
    host.seen.filter(({ action, code }) => action === 'CreateRoutes' && code !== 'OK'),
    [],
  );
  const events = world.world.scene.events('FailedToCreateRoute');
  t.is(events.length, 5);
  t.regex(events[0] ?? '', /it would exceed the quota of 60 routes; have the quota raised/);
  host.model.state.routeTables.quota = 100;
  await world.advance(2 * MINUTE_MS);
  t.is(world.routes().length, 65);
  await world.stop();
});

test('node-route-controller: --routes=table: without the right to read the quota the cloud refuses what is too many, and all that fits is there', async (t) => {
  const world = await RouteWorld.start('--routes=table', '--route-tables=rtb-test0001');
  const { host } = world.world.scene;
  host.faults.add({ fault: { kind: 'error', code: 'UnauthorizedOperation' }, actions: ['DescribeVpcLimits'] });
  host.model.state.routeTables.quota = 60;
  for (let index = 0; index < 65; index++) await world.join(`n${index}`, `172.16.${index}.0/24`);
  await world.advance(3 * MINUTE_MS);
  t.is(world.routes().length, 60);
  t.regex(world.world.scene.events('FailedToCreateRoute').join(), /LimitExceeded/);
  await world.stop();
});
