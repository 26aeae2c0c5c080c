import test from 'ava';
import { ServicePods } from './service-pods.ts';
import { MORE_RIGHTS, ServiceWorld } from './service-world.ts';

const DIRECT = 'service.cloud.tencent.com/direct-access';
/** Longer than a creation and the registration of its targets. */
const DONE_MS = 40_000;

async function start(options: Parameters<typeof ServiceWorld.start>[0] = {}) {
  const world = await ServiceWorld.start(options);
  const pods = new ServicePods(world);
  await world.join('n1');
  await world.join('n2');
  return { world, pods };
}

const direct = (value = 'true') => ({ metadata: { annotations: { [DIRECT]: value } } });

test('a Pod that ends gets weight 0 before those that come are registered, and in two calls for many', async (t) => {
  const { world, pods } = await start();
  await world.create('web', direct());
  const old: string[] = [];
  for (const name of ['a', 'b', 'c']) old.push(await pods.run('web', name, { node: 'n1' }));
  await world.advance(DONE_MS);
  const changes = world.events('UpdatedLoadBalancer').length;
  await pods.run('web', 'd', { node: 'n2' });
  await pods.run('web', 'e', { node: 'n2' });
  await pods.delete('a');
  await world.advance(10_000);
  const targets = world.listeners()['TCP/80'] ?? [];
  t.is(targets.filter((one) => one.endsWith(' 10')).length, 4);
  t.true(targets.includes(`${old[0]}:8080 0`));
  t.true(world.events('UpdatedLoadBalancer').length - changes <= 2);
  await world.stop();
});

test('Nodes serve until a Pod is healthy, however long that takes', async (t) => {
  const { world, pods } = await start();
  await world.create('web', { spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  const ip = await pods.run('web', 'a', { node: 'n1' });
  const { health } = world.world.scene.host.model.state.clb;
  health.say(ip, false);
  await world.advance(DONE_MS);
  const nodes = world.listeners()['TCP/80'] ?? [];
  await world.patch('web', direct());
  await world.advance(180_000);
  t.deepEqual(world.listeners()['TCP/80'], [...nodes, `${ip}:8080 10`].toSorted());
  t.regex(world.events('UnAvailableLoadBalancer').join(), /no new target of lb-\w+ is healthy, so .* stay/);
  await world.replace();
  await world.advance(60_000);
  t.deepEqual(world.listeners()['TCP/80'], [...nodes, `${ip}:8080 10`].toSorted(), 'also for the next process');
  health.say(ip, true);
  await world.advance(120_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${ip}:8080 10`]);
  await world.stop();
});

test('with the published role alone Pods are not bound, an event names the rights, and with them they are', async (t) => {
  const { world, pods } = await start({ isSeedRole: true });
  await world.create('web', direct());
  const ip = await pods.run('web', 'a', { node: 'n1' });
  await world.advance(DONE_MS);
  t.deepEqual(world.balancers(), []);
  const [event = ''] = world.events('DirectAccessImpossible');
  t.regex(event, /may not list pods, watch pods, list endpointslices.discovery.k8s.io, watch endpointslices/);
  t.regex(await world.world.metrics(), /problem\{kind="Forbidden",name="service-lb-controller: list pods"\} 1/);
  await world.world.scene.setRules((rules) => [...rules, ...MORE_RIGHTS]);
  await world.advance(120_000);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:8080 10`] });
  await world.stop();
});

test('each Pod is bound by its own kind, and one that cannot be is reported', async (t) => {
  const flags = ['--routes=global', '--cluster-cidr=192.168.0.0/16'];
  const { world, pods } = await start({ flags });
  const { clb } = world.world.scene.host.model.state;
  Object.assign(clb.spec, { takesRoutedTargets: true });
  await world.patchNode('n1', { spec: { podCIDR: '192.168.1.0/24', podCIDRs: ['192.168.1.0/24'] } });
  await world.create('web', direct());
  const eni = await pods.run('web', 'a', { node: 'n1' });
  await pods.run('web', 'b', { node: 'n1', ip: '192.168.1.7' });
  const host = world.nodeIp('n2');
  await pods.run('web', 'c', { node: 'n2', ip: host, hostNetwork: true });
  await world.advance(DONE_MS);
  const targets = [...(world.listener('TCP', 80)?.targets.values() ?? [])];
  t.deepEqual(
    targets.map(({ ip, type }) => `${ip} ${type}`).toSorted(),
    [`${eni} ENI`, `${host} CVM`, '192.168.1.7 GLOBALROUTE'].toSorted(),
  );
  t.deepEqual(world.events('DirectAccessImpossible'), []);
  await world.stop();
});

test('without --routes a GlobalRoute Pod is not bound, and the others are', async (t) => {
  const { world, pods } = await start();
  await world.create('web', direct());
  const eni = await pods.run('web', 'a', { node: 'n1' });
  const annotations = { 'tke.cloud.tencent.com/networks': 'tke-bridge' };
  await pods.run('web', 'b', { node: 'n1', ip: '192.168.1.7', annotations });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${eni}:8080 10`] });
  t.regex(world.events('DirectAccessImpossible').join(), /^default\/b is not bound .* --routes/);
  await world.stop();
});

test('Nodes stay the backends while no Pod can take their place', async (t) => {
  const { world, pods } = await start();
  await world.create('web', { spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  const annotations = { 'tke.cloud.tencent.com/networks': 'tke-bridge' };
  await pods.run('web', 'a', { node: 'n1', ip: '192.168.1.7', annotations });
  await world.advance(DONE_MS);
  const nodes = world.listeners()['TCP/80'] ?? [];
  t.is(nodes.length, 2);
  await world.patch('web', direct());
  await world.advance(180_000);
  t.deepEqual(world.listeners()['TCP/80'], nodes);
  t.regex(world.events('DirectAccessImpossible').join(), /^default\/a is not bound .* --routes/);
  const ip = await pods.run('web', 'b', { node: 'n1' });
  await world.advance(180_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${ip}:8080 10`]);
  await world.stop();
});

test('a Pod that is gone has weight 0 though its slice still has it, and a new one of its name does not raise that', async (t) => {
  const { world, pods } = await start();
  await world.create('web', direct());
  const a = await pods.run('web', 'a', { node: 'n1' });
  const b = await pods.run('web', 'b', { node: 'n2' });
  await world.advance(DONE_MS);
  pods.holdSlices();
  await pods.end('a');
  await world.advance(10_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${a}:8080 0`, `${b}:8080 10`].toSorted());
  await pods.run('web', 'a', { node: 'n1', isReady: false });
  await world.advance(10_000);
  t.deepEqual(world.listeners()['TCP/80'], [`${a}:8080 0`, `${b}:8080 10`].toSorted());
  await world.stop();
});

test('a Pod whose address the cloud refuses does not keep the others out', async (t) => {
  const { world, pods } = await start();
  await world.create('web', direct());
  await pods.run('web', 'bad', { node: 'n1', ip: '10.0.200.9' });
  const good: string[] = [];
  for (const name of ['a', 'b', 'c']) good.push(await pods.run('web', name, { node: 'n1' }));
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': good.map((ip) => `${ip}:8080 10`).toSorted() });
  t.regex(
    world.events('SyncLoadBalancerFailed').join(),
    /refused a target of lb-\w+, as 10\.0\.200\.9:8080 of TCP\/80: /,
  );
  const [balancer] = world.balancers();
  t.is(world.ingress('web')[0]?.['ip'], balancer?.vip);
  await world.stop();
});

test('an account that takes no targets of GlobalRoute has the others, after a bounded number of calls', async (t) => {
  const { world, pods } = await start({ flags: ['--routes=global', '--cluster-cidr=192.168.0.0/16'] });
  await world.patchNode('n1', { spec: { podCIDR: '192.168.1.0/24', podCIDRs: ['192.168.1.0/24'] } });
  for (let host = 10; host < 70; host++) await pods.run('web', `gr${host}`, { node: 'n1', ip: `192.168.1.${host}` });
  const eni = [await pods.run('web', 'a', { node: 'n2' }), await pods.run('web', 'b', { node: 'n2' })];
  const before = world.world.lives.made.read;
  await world.create('web', direct());
  await pods.sync();
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': eni.map((ip) => `${ip}:8080 10`).toSorted() });
  t.regex(world.events('SyncLoadBalancerFailed').join(), /refused 60 targets of .*, as 192\.168\.1\./);
  const calls = world.world.lives.made.read - before;
  t.true(calls < 400, `${calls} calls in ${DONE_MS} ms`);
  await world.stop();
});

test('targets that the cloud refuses are left alone for some minutes, and the others go at once', async (t) => {
  const { world, pods } = await start();
  const { host } = world.world.scene;
  const registrations = (): number => host.seen.filter(({ action }) => action === 'BatchRegisterTargets').length;
  const bad = Array.from({ length: 30 }, (_, at) => `10.0.200.${at + 1}`);
  for (const [at, ip] of bad.entries()) await pods.run('web', `bad${at}`, { node: 'n1', ip });
  const good = [await pods.run('web', 'good', { node: 'n1' })];
  await world.create('web', direct());
  await pods.sync();
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': good.map((ip) => `${ip}:8080 10`) });
  host.forget();
  await world.advance(5_000);
  good.push(await pods.run('web', 'another', { node: 'n2' }));
  await world.advance(5_000);
  t.deepEqual(world.listeners(), { 'TCP/80': good.map((ip) => `${ip}:8080 10`).toSorted() });
  t.is(registrations(), 1, 'none that was refused is tried with it');
  host.forget();
  await world.advance(3_600_000);
  const calls = registrations();
  t.true(calls >= 30 && calls <= 130, `${calls} calls in an hour`);
  t.is(world.events('SyncLoadBalancerFailed').filter((text) => text.includes('refused 30 targets')).length, 1);
  await world.stop();
});

test('a target that the cloud takes after all is registered, and nothing is reported any more', async (t) => {
  const { world, pods } = await start();
  await world.create('web', direct());
  const good = await pods.run('web', 'good', { node: 'n1' });
  await world.advance(DONE_MS);
  const { host } = world.world.scene;
  const end = host.faults.add({ fault: { kind: 'refuse-one' }, actions: ['BatchRegisterTargets'] });
  const late = await pods.run('web', 'late', { node: 'n1' });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${good}:8080 10`] });
  end();
  await world.advance(120_000);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${good}:8080 10`, `${late}:8080 10`].toSorted() });
  host.forget();
  await world.advance(1_300_000);
  t.is(host.seen.filter(({ action }) => action === 'BatchRegisterTargets').length, 0);
  await world.stop();
});

test('Nodes stay the backends while the cloud refuses all Pods', async (t) => {
  const { world, pods } = await start();
  await world.create('web');
  await world.advance(DONE_MS);
  const nodes = world.listeners();
  await pods.run('web', 'bad', { node: 'n1', ip: '10.0.200.9' });
  await world.patch('web', direct());
  await world.advance(600_000);
  t.deepEqual(world.listeners(), nodes);
  t.regex(world.events('SyncLoadBalancerFailed').join(), /refused a target of lb-/);
  await world.stop();
});

test('a Pod that ends gets weight 0 though the cloud refuses another one', async (t) => {
  const { world, pods } = await start();
  await world.create('web', direct());
  const a = await pods.run('web', 'a', { node: 'n1' });
  await world.advance(DONE_MS);
  await pods.run('web', 'bad', { node: 'n1', ip: '10.0.200.9' });
  await world.advance(300_000);
  await pods.delete('a');
  await world.advance(10_000);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${a}:8080 0`] });
  await world.stop();
});

test('above the quota of targets a new Pod takes the place of one that is gone', async (t) => {
  const { world, pods } = await start();
  world.world.scene.host.model.state.clb.limits.targets = 3;
  await world.create('web', direct());
  const names = ['a', 'b', 'c', 'd', 'e'];
  const ips = new Map<string, string>();
  for (const name of names) ips.set(name, await pods.run('web', name, { node: 'n1' }));
  await world.advance(DONE_MS);
  const before = world.listeners()['TCP/80'] ?? [];
  t.is(before.length, 3);
  t.regex(world.events('TargetsOverQuota').join(), /5 Pods are backends.* 3 targets/);
  const bound = names.find((name) => before.includes(`${ips.get(name)}:8080 10`));
  await pods.end(bound ?? '');
  await world.advance(120_000);
  const after = world.listeners()['TCP/80'] ?? [];
  t.is(after.filter((one) => one.endsWith(' 10')).length, 3);
  t.is(after.filter((one) => before.includes(one)).length, 2);
  await world.stop();
});

test('Pods that stay and are not ready give their places to ready ones when the quota is reached', async (t) => {
  const { world, pods } = await start();
  world.world.scene.host.model.state.clb.limits.targets = 3;
  const annotations = { [DIRECT]: 'true', 'service.cloud.tencent.com/enable-grace-shutdown-tkex': 'true' };
  await world.create('web', { metadata: { annotations } });
  const a = await pods.run('web', 'a', { node: 'n1' });
  for (const name of ['b', 'c']) await pods.run('web', name, { node: 'n1' });
  await world.advance(DONE_MS);
  for (const name of ['b', 'c']) await pods.setContainersReady(name, false);
  await world.advance(DONE_MS);
  t.is(world.listeners()['TCP/80']?.length, 3, 'they stay with weight 0');
  const d = await pods.run('web', 'd', { node: 'n2' });
  await world.advance(DONE_MS);
  const targets = world.listeners()['TCP/80'] ?? [];
  t.deepEqual(
    targets.filter((one) => one.endsWith(' 10')),
    [`${a}:8080 10`, `${d}:8080 10`].toSorted(),
  );
  t.is(targets.length, 3, 'no more of them go than have to');
  await world.stop();
});

test('a Pod that ends does not wait behind Services that are to come, of which there are more than workers', async (t) => {
  const { world, pods } = await start();
  await world.create('web', direct());
  for (const name of ['a', 'b']) await pods.run('web', name, { node: 'n1' });
  await world.advance(DONE_MS);
  const others = Array.from({ length: 60 }, (_, at) => `other${at}`);
  for (const name of others) await world.create(name);
  await world.advance(1_000);
  const { host } = world.world.scene;
  host.forget();
  await pods.delete('a');
  await world.advance(DONE_MS);
  const actions = host.seen.map(({ action }) => action);
  const drained = actions.indexOf('BatchModifyTargetWeight');
  const toCome = actions.slice(drained).filter((action) => action === 'CreateLoadBalancer');
  t.true(drained >= 0);
  t.true(toCome.length > others.length / 4, `${toCome.length} creations came after it`);
  await world.advance(4 * DONE_MS);
  t.is(world.balancers().length, 1 + others.length);
  await world.stop();
});
