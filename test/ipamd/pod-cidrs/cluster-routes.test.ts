import type { ExecutionContext } from 'ava';
import { NODES } from '../../../kube/resource-types.ts';
import { routeDescription } from '../../../pod-routes/decide-routes.ts';
import { longTest, shortTest } from '../../support/suite-part.ts';
import { type RoutesScene, routesScene } from './routes-scene.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const cidrOf = (index: number): string => `172.16.${index}.0/24`;
const names = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `n${index}`);

async function joinAll(scene: RoutesScene, count: number): Promise<readonly string[]> {
  for (const [index, name] of names(count).entries()) await scene.join(name, cidrOf(index));
  return names(count);
}

/** Every node has exactly one route, to itself. */
function areRouted(t: ExecutionContext, scene: RoutesScene, nodes: readonly string[]): void {
  for (const [index, name] of nodes.entries()) t.deepEqual(scene.routesOf(name), [cidrOf(index)], name);
}

shortTest('routes: each Node gets one route and the condition; a new leader adopts them', async (t) => {
  const scene = await routesScene();
  const { clock, host } = scene.shell;
  const first = await scene.start('first');
  const nodes = await joinAll(scene, 8);
  await scene.join('bare');
  await clock.advance(10_000);
  areRouted(t, scene, nodes);
  t.is(scene.routes().length, 8);
  t.deepEqual(new Set(nodes.map(scene.networkOf)), new Set(['False RouteCreated']));
  t.is(scene.networkOf('bare'), undefined, 'a Node without podCIDR has no say in routes');
  t.true(scene.routes().every(({ description }) => description === routeDescription('cls-shell001')));
  await clock.run(first.close());
  host.forget();
  const second = await scene.start('second');
  await clock.advance(3 * MINUTE_MS);
  t.true(second.isLeading);
  areRouted(t, scene, nodes);
  t.deepEqual([host.counts()['CreateGlobalRoutes'], host.counts()['DeleteGlobalRoutes']], [undefined, undefined]);
  t.true((host.counts()['DescribeGlobalRoutes'] ?? 0) <= 4, `${host.counts()['DescribeGlobalRoutes']} lists`);
  await clock.run(second.close());
});

shortTest('routes: without the flag the routes of the VPC are not looked at', async (t) => {
  const scene = await routesScene();
  const ipamd = await scene.start('ipamd', '--gr-routes=none');
  await joinAll(scene, 2);
  await scene.shell.clock.advance(2 * MINUTE_MS);
  t.is(scene.shell.host.counts()['DescribeGlobalRoutes'], undefined);
  t.is(scene.networkOf('n0'), undefined);
  await scene.shell.clock.run(ipamd.close());
});

shortTest('routes: a wrong one is moved, one that a person deleted comes back, those of others stay', async (t) => {
  const scene = await routesScene();
  const { clock } = scene.shell;
  const wrong = scene.addRoute({ cidr: cidrOf(0), gatewayIp: '10.0.0.77' });
  const foreign = scene.addRoute({ cidr: '192.168.0.0/24', gatewayIp: '10.0.0.77' });
  const others = scene.addRoute({
    cidr: '172.16.200.0/24',
    gatewayIp: '10.0.0.77',
    description: routeDescription('cls-other001'),
  });
  const ipamd = await scene.start();
  const nodes = await joinAll(scene, 2);
  await clock.advance(10_000);
  areRouted(t, scene, nodes);
  t.false(scene.routes().includes(wrong));
  const { state } = scene.shell.host.model;
  for (const route of scene.routes()) if (route.cidr === cidrOf(1)) state.removeGlobalRoute(route);
  await clock.advance(2 * MINUTE_MS);
  areRouted(t, scene, nodes);
  t.true(scene.routes().includes(foreign) && scene.routes().includes(others));
  await clock.run(ipamd.close());
});

shortTest(
  'routes: a Node that registers again keeps its route, and loses it when it gets another network',
  async (t) => {
    const scene = await routesScene();
    const { clock, kube } = scene.shell;
    const ipamd = await scene.start();
    const [name = ''] = await joinAll(scene, 1);
    await clock.advance(10_000);
    const ip = scene.ipOf(name);
    await clock.run(kube.delete(NODES, { name }));
    const spec = { providerID: `qcloud:///100003/ins-shell${name}` };
    await clock.run(kube.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec }));
    const status = { addresses: [{ type: 'InternalIP', address: ip }] };
    await clock.run(kube.patch(NODES, { name }, { kind: 'strategic', body: { status }, subresource: 'status' }));
    await clock.advance(5 * MINUTE_MS);
    t.deepEqual(scene.routesOf(name), [cidrOf(0)]);
    const body = { spec: { podCIDR: cidrOf(9), podCIDRs: [cidrOf(9)] } };
    await clock.run(kube.patch(NODES, { name }, { kind: 'merge', body }));
    await clock.advance(10_000);
    t.deepEqual(scene.routesOf(name), [cidrOf(9)]);
    t.is(scene.networkOf(name), 'False RouteCreated');
    await clock.run(ipamd.close());
  },
);

longTest(
  'routes: those of nodes whose machines are gone go at once; of machines that run, a share per hour',
  async (t) => {
    const scene = await routesScene();
    const { clock } = scene.shell;
    const ipamd = await scene.start();
    await joinAll(scene, 40);
    await clock.advance(30_000);
    t.is(scene.routes().length, 40);
    for (const name of names(20)) await scene.leave(name, true);
    await clock.advance(MINUTE_MS);
    t.is(scene.routes().length, 20);
    for (const name of names(32).slice(20)) await scene.leave(name, false);
    await clock.advance(HOUR_MS / 2);
    t.is(scene.routes().length, 17);
    await clock.advance(HOUR_MS);
    t.is(scene.routes().length, 14);
    const text = await clock.run(ipamd.metrics.registry.metrics());
    t.regex(text, /cluster_routes\{state="held"\} 6\n/);
    t.regex(text, /cluster_routes\{state="right"\} 8\n/);
    await clock.run(ipamd.close());
  },
);

shortTest(
  'routes: none goes when the API server has no Node at all, or its lists lack a Node that can be read',
  async (t) => {
    const scene = await routesScene();
    const { clock, server } = scene.shell;
    const ipamd = await scene.start();
    const nodes = await joinAll(scene, 6);
    await clock.advance(30_000);
    const heal = server.api.faults.add({ resources: ['nodes'], userAgent: 'ipamd', action: { kind: 'empty-list' } });
    server.cutWatches('ipamd');
    await clock.advance(HOUR_MS / 6);
    t.is(scene.routes().length, 6);
    heal();
    server.cutWatches('ipamd');
    await clock.advance(2 * MINUTE_MS);
    areRouted(t, scene, nodes);
    for (const name of nodes) await scene.leave(name, true);
    await clock.advance(HOUR_MS / 6);
    t.is(scene.routes().length, 6);
    await clock.run(ipamd.close());
  },
);

shortTest(
  'routes: a used-up quota is told once by Node, asked for by one call at a time, and not for ever',
  async (t) => {
    const scene = await routesScene({ globalRoutes: 3 });
    const { clock, host } = scene.shell;
    const ipamd = await scene.start();
    const nodes = await joinAll(scene, 30);
    await clock.advance(30_000);
    t.is(scene.routes().length, 3);
    t.is(nodes.filter((name) => scene.networkOf(name) === 'True NoRouteCreated').length, 27);
    t.is(new Set(scene.events('FailedToCreateRoute')).size > 0, true);
    t.regex(
      scene.events('FailedToCreateRoute').join('\n'),
      /the VPC got no route to 172\.16\.\d+\.0\/24: CreateGlobalRoutes: Code=LimitExceeded/,
    );
    host.forget();
    await clock.advance(20 * MINUTE_MS);
    t.true((host.counts()['CreateGlobalRoutes'] ?? 0) <= 8, `${host.counts()['CreateGlobalRoutes']} creations`);
    host.model.state.globalRouteQuota = 100;
    await clock.advance(11 * MINUTE_MS);
    areRouted(t, scene, nodes);
    t.deepEqual(new Set(nodes.map(scene.networkOf)), new Set(['False RouteCreated']));
    await clock.run(ipamd.close());
  },
);

shortTest(
  'routes: a Node that cannot have one is told so: a foreign network, a network of two Nodes, no address',
  async (t) => {
    const scene = await routesScene();
    const { clock, kube } = scene.shell;
    const ipamd = await scene.start();
    await joinAll(scene, 1);
    await clock.advance(10_000);
    await scene.join('twin', cidrOf(0));
    await scene.join('far', '192.168.7.0/24');
    const spec = { providerID: 'qcloud:///100003/ins-none0001', podCIDR: cidrOf(5), podCIDRs: [cidrOf(5)] };
    await clock.run(kube.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'lost' }, spec }));
    await clock.advance(2 * MINUTE_MS);
    areRouted(t, scene, ['n0']);
    t.is(scene.routes().length, 1);
    t.deepEqual(['n0', 'twin', 'far', 'lost'].map(scene.networkOf), [
      'False RouteCreated',
      'True NoRouteCreated',
      'True NoRouteCreated',
      'True NoRouteCreated',
    ]);
    t.deepEqual(scene.events('FailedToCreateRoute').toSorted(), [
      'podCIDR 172.16.0.0/24 is that of node n0 too; it leads there',
      'podCIDR 172.16.5.0/24 leads nowhere: the Node has no IPv4 address of type InternalIP',
      'podCIDR 192.168.7.0/24 is in no network of --cluster-cidr, 172.16.0.0/16; add it there, or delete the Node so that it gets another',
    ]);
    await clock.run(ipamd.close());
  },
);

shortTest('routes: a new leader that gets an old description says of no Node that it has no route', async (t) => {
  const scene = await routesScene();
  const { clock, host, server } = scene.shell;
  const first = await scene.start('first');
  const nodes = await joinAll(scene, 3);
  await clock.advance(10_000);
  areRouted(t, scene, nodes);
  await clock.run(first.close());
  host.faults.add({ fault: { kind: 'stale', ms: 55_000 }, actions: ['DescribeGlobalRoutes'], times: 1 });
  host.forget();
  const second = await scene.start('second');
  const seen = new Set<string | undefined>();
  for (let step = 0; step < 60; step++) {
    await clock.advance(500);
    for (const name of nodes) seen.add(scene.networkOf(name));
  }
  t.true(second.isLeading);
  t.is(host.counts()['CreateGlobalRoutes'], 5, 'the old description lacks them: a call for all, then for each half');
  t.deepEqual([...seen], ['False RouteCreated']);
  t.deepEqual(scene.events('FailedToCreateRoute'), []);
  areRouted(t, scene, nodes);
  t.is(server.objects('nodes').length, 3);
  await clock.run(second.close());
});

shortTest('routes: a moved route never leads to two nodes, where the cloud would allow it', async (t) => {
  const scene = await routesScene({ globalRouteEcmp: true });
  const { clock, host } = scene.shell;
  for (const index of [0, 1, 2]) scene.addRoute({ cidr: cidrOf(index), gatewayIp: '10.0.0.77' });
  const widths: number[] = [];
  host.gate = async ({ moment }) => {
    const counts = Map.groupBy(scene.routes(), ({ cidr }) => cidr);
    if (moment === 'after') widths.push(...[...counts.values()].map((routes) => routes.length));
    return 'go';
  };
  const ipamd = await scene.start();
  const nodes = await joinAll(scene, 3);
  await clock.advance(10_000);
  areRouted(t, scene, nodes);
  t.like(host.counts(), { DeleteGlobalRoutes: 1, CreateGlobalRoutes: 1 });
  t.is(Math.max(...widths), 1);
  await clock.run(ipamd.close());
});
