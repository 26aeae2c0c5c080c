/** What upstream's tests of load balancers ask for, by name, and which tests here show it: upstream-cases.ts. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';
import { LOAD_BALANCERS, LOCAL_POLICY } from './upstream-cases.ts';

const DIRECT = { metadata: { annotations: { 'service.cloud.tencent.com/direct-access': 'true' } } } as const;
const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';
/** Longer than a creation, the registration of its targets, and a deletion. */
const DONE_MS = 90_000;
const PROTOCOLS = ['TCP', 'UDP'] as const;
const ROOT = new URL('../../../', import.meta.url);

test('each case of upstream is shown by tests that exist, and what is refused by one that sees the event', (t) => {
  t.deepEqual([LOAD_BALANCERS.length, LOCAL_POLICY.length], [13, 4]);
  const cases = [...LOAD_BALANCERS, ...LOCAL_POLICY];
  t.is(new Set(cases.map(({ name }) => name)).size, cases.length);
  for (const { name, shown, refused } of cases) {
    t.true(shown.length > 0, name);
    for (const [file, title] of shown) {
      const source = readFileSync(new URL(file, ROOT), 'utf8').replaceAll(/\$\{\w+\}/g, '*');
      const isThere = [`'${title}'`, `\`${title}\``].some((text) => source.includes(text));
      t.true(isThere, `${file} has no test "${title}", which shows "${name}"`);
    }
    if (refused === undefined) continue;
    const sources = shown.map(([file]) => readFileSync(new URL(file, ROOT), 'utf8')).join('\n');
    t.true(sources.includes(`events('${refused.event}')`), `${name}: no test sees ${refused.event}`);
  }
});

for (const protocol of PROTOCOLS) {
  test(`type, node port and port of a ${protocol} Service change, and its address stays as long as it has one`, async (t) => {
    const world = await ServiceWorld.start();
    const ip = await world.join('n1');
    const port = (number: number, nodePort?: number) => ({
      spec: { ports: [{ protocol, port: number, ...(nodePort === undefined ? {} : { nodePort }) }] },
    });
    await world.create('web', { spec: { type: 'ClusterIP', ...port(80).spec } });
    await world.patch('web', { spec: { type: 'NodePort' } });
    await world.advance(DONE_MS);
    t.deepEqual(world.balancers(), []);
    const [first = 0] = world.nodePorts('web');
    await world.patch('web', { spec: { type: 'LoadBalancer' } });
    await world.advance(DONE_MS);
    t.deepEqual(world.nodePorts('web'), [first]);
    t.deepEqual(world.listeners(), { [`${protocol}/80`]: [`${ip}:${first} 10`] });
    const address = world.ingress('web');
    t.is(address.length, 1);
    const other = first === 31_000 ? 31_001 : 31_000;
    await world.patch('web', port(80, other));
    await world.advance(2 * DONE_MS);
    t.deepEqual(world.listeners(), { [`${protocol}/80`]: [`${ip}:${other} 10`] });
    await world.patch('web', port(81, other));
    await world.advance(DONE_MS);
    t.deepEqual(world.listeners(), { [`${protocol}/81`]: [`${ip}:${other} 10`] });
    t.deepEqual(world.ingress('web'), address);
    await world.patch('web', { spec: { type: 'ClusterIP' } });
    await world.advance(DONE_MS);
    t.deepEqual(world.balancers(), []);
    t.deepEqual(world.ingress('web'), []);
    t.is(world.annotation('web', 'service.kubernetes.io/loadbalance-id'), undefined);
    await world.stop();
  });

  test(`a ${protocol} Service with direct access has no targets without Pods, and has them again`, async (t) => {
    const world = await ServiceWorld.start();
    const pods = new ServicePods(world);
    await world.join('n1');
    await world.create('web', { ...DIRECT, spec: { ports: [{ protocol, port: 80 }] } });
    const before = await pods.run('web', 'a', { node: 'n1' });
    await world.advance(DONE_MS);
    t.deepEqual(world.listeners(), { [`${protocol}/80`]: [`${before}:8080 10`] });
    const address = world.ingress('web');
    await pods.end('a');
    await world.advance(2 * DONE_MS);
    t.deepEqual(world.listeners(), { [`${protocol}/80`]: [] });
    t.regex(world.events('UnAvailableLoadBalancer').join(), /no ready Pods/);
    const after = await pods.run('web', 'b', { node: 'n1' });
    await world.advance(DONE_MS);
    t.deepEqual(world.listeners(), { [`${protocol}/80`]: [`${after}:8080 10`] });
    t.deepEqual(world.ingress('web'), address);
    await world.stop();
  });
}

for (const policy of ['Cluster', 'Local'] as const)
  test(`affinity is the session of the listener, and may be switched, with the policy ${policy}`, async (t) => {
    const world = await ServiceWorld.start();
    await world.join('n1');
    await world.create('web', { spec: { externalTrafficPolicy: policy } });
    await world.advance(DONE_MS);
    const { loadBalancerId } = world.balancer();
    const sessions: (number | undefined)[] = [];
    const affinity = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } };
    const without = { sessionAffinity: 'None', sessionAffinityConfig: null };
    for (const spec of [affinity, without, affinity]) {
      await world.patch('web', { spec });
      await world.advance(DONE_MS);
      sessions.push(world.listener('TCP', 80)?.sessionExpireTime);
    }
    t.deepEqual(sessions, [600, 0, 600]);
    t.is(world.balancer().loadBalancerId, loadBalancerId);
    await world.stop();
  });

test('the finalizer is there as long as the Service has a load balancer', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const finalizers = (): readonly string[] => world.service('web')?.metadata.finalizers ?? [];
  await world.create('web');
  await world.advance(DONE_MS);
  t.deepEqual([finalizers(), world.balancers().length], [[FINALIZER], 1]);
  await world.patch('web', { spec: { type: 'ClusterIP' } });
  await world.advance(DONE_MS);
  t.deepEqual([finalizers(), world.balancers().length], [[], 0]);
  await world.patch('web', { spec: { type: 'LoadBalancer' } });
  await world.advance(DONE_MS);
  t.deepEqual([finalizers(), world.balancers().length], [[FINALIZER], 1]);
  await world.delete('web');
  await world.advance(DONE_MS);
  t.deepEqual([world.service('web'), world.balancers().length], [undefined, 0]);
  await world.stop();
});

test('a Service with direct access needs no node port, and gets one without another address', async (t) => {
  const world = await ServiceWorld.start();
  const pods = new ServicePods(world);
  await world.join('n1');
  const ip = await pods.run('web', 'a', { node: 'n1' });
  await world.create('web', { ...DIRECT, spec: { allocateLoadBalancerNodePorts: false } });
  await pods.sync();
  await world.advance(DONE_MS);
  t.deepEqual(world.nodePorts('web'), [0]);
  const before = [world.ingress('web'), world.listeners()];
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:8080 10`] });
  await world.patch('web', { spec: { allocateLoadBalancerNodePorts: true } });
  await world.advance(DONE_MS);
  t.true((world.nodePorts('web')[0] ?? 0) > 0);
  t.deepEqual([world.ingress('web'), world.listeners()], before);
  await world.stop();
});

test('a Service without node ports and without direct access is refused by event until it has them', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  await world.create('web', { spec: { allocateLoadBalancerNodePorts: false } });
  await world.advance(DONE_MS);
  t.deepEqual(world.balancers(), []);
  t.regex(world.events('ServiceRefused').join(), /no node port.*allocateLoadBalancerNodePorts.*direct-access/);
  await world.patch('web', { spec: { allocateLoadBalancerNodePorts: true } });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:${world.nodePorts('web')[0]} 10`] });
  await world.stop();
});

test('the policy flips between Cluster and Local, and UDP with Local is refused by event', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  await world.create('web');
  await world.advance(DONE_MS);
  const { loadBalancerId } = world.balancer();
  const targets = world.listeners();
  const ports: unknown[] = [];
  for (const externalTrafficPolicy of ['Local', 'Cluster', 'Local']) {
    await world.patch('web', { spec: { externalTrafficPolicy } });
    await world.advance(DONE_MS);
    const { healthCheckNodePort } = (world.service('web')?.['spec'] ?? {}) as { readonly healthCheckNodePort?: number };
    ports.push(
      world.listener('TCP', 80)?.healthCheck?.CheckPort === healthCheckNodePort && healthCheckNodePort !== undefined,
    );
    t.deepEqual(world.listeners(), targets);
  }
  t.deepEqual(ports, [true, false, true]);
  t.is(world.balancer().loadBalancerId, loadBalancerId);
  await world.create('dns', { spec: { externalTrafficPolicy: 'Local', ports: [{ protocol: 'UDP', port: 53 }] } });
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceRefused').join(), /port 53 of UDP: with externalTrafficPolicy Local.*set it to Cluster/);
  t.is(world.balancers().length, 1);
  await world.stop();
});
