/**
 * What a kubelet may write into its own Node harms no other machine: InternalIP, annotations, labels and readiness at any time,
 * providerID and podCIDR when it registers.
 */
import test from 'ava';
import { NODES } from '../../../kube/resource-types.ts';
import { RouteWorld } from '../routes/route-world.ts';
import { ServicePods } from '../services/service-pods.ts';
import { ServiceWorld } from '../services/service-world.ts';

const SEEN = 'tke.cloud.tencent.com/seen-instance';
const EXCLUDE = 'node.kubernetes.io/exclude-from-external-load-balancers';
const DIRECT = 'service.cloud.tencent.com/direct-access';
const DONE_MS = 60_000;
const VPC = 'vpc-00000001';
const PORTS = { ports: [{ port: 53, protocol: 'UDP', nodePort: 30_053 }] };

/** The targets with their instances, of all listeners of the only load balancer. */
function targetsOf(world: ServiceWorld): readonly string[] {
  const all = [...world.balancer().listeners.values()].flatMap(({ targets }) => [...targets.values()]);
  return all.map(({ ip, instanceId, weight }) => `${ip} ${instanceId ?? 'by address'} ${weight}`).toSorted();
}

async function setStatus(world: ServiceWorld, name: string, status: object): Promise<void> {
  const { clock, admin } = world.world.scene;
  await clock.run(admin.patch(NODES, { name }, { kind: 'merge', body: { status }, subresource: 'status' }));
}

const conditions = (status: string) => [{ type: 'Ready', status, reason: 'Kubelet' }];

for (const status of ['False', 'True', 'Unknown'])
  test(`the address of another machine in a Node that is Ready=${status} changes no target, now and after a restart`, async (t) => {
    const world = await ServiceWorld.start();
    const ips = [await world.join('n1'), await world.join('zevil')];
    await world.create('dns', { spec: PORTS });
    await world.advance(DONE_MS);
    const right = targetsOf(world);
    t.deepEqual(right, ips.map((ip, at) => `${ip} ins-serv${['n1', 'zevil'][at]} 10`).toSorted());
    const addresses = [{ type: 'InternalIP', address: ips[0] ?? '' }];
    await setStatus(world, 'zevil', { addresses, conditions: conditions(status) });
    const expected = [`${ips[0]} ins-servn1 10`, `${ips[1]} ins-servzevil ${status === 'True' ? 10 : 0}`].toSorted();
    for (const moment of ['at once', 'after a restart']) {
      for (let at = 0; at < 5; at++) {
        await world.advance(2_000);
        t.true(targetsOf(world).includes(`${ips[0]} ins-servn1 10`), moment);
      }
      await world.advance(DONE_MS);
      t.deepEqual(targetsOf(world), expected, moment);
      await world.replace();
    }
    await world.stop();
  });

test('a Node that registers with the instance of another is the loser of the two, and says so', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  await world.create('dns', { spec: PORTS });
  await world.advance(DONE_MS);
  const providerID = 'qcloud:///100003/ins-servn1';
  const addresses = [{ type: 'InternalIP', address: ip }];
  await world.world.join('aevil', { providerID, addresses, labels: { [EXCLUDE]: 'true' } });
  await world.advance(DONE_MS);
  t.deepEqual(targetsOf(world), [`${ip} ins-servn1 10`]);
  t.deepEqual(
    world.events('InstanceTaken').map((text) => /Node (\w+)/.exec(text)?.[1]),
    ['n1'],
  );
  await world.replace();
  await world.advance(DONE_MS);
  t.deepEqual(targetsOf(world), [`${ip} ins-servn1 10`]);
  await world.stop();
});

test('a machine that comes back under another name serves under that, and the former Node does not count', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('old');
  await world.create('dns', { spec: PORTS });
  await world.advance(DONE_MS);
  await world.world.setReady('old', 'Unknown');
  const providerID = 'qcloud:///100003/ins-servold';
  await world.world.join('new', { providerID, addresses: [{ type: 'InternalIP', address: ip }] });
  await world.advance(DONE_MS);
  t.deepEqual(targetsOf(world), [`${ip} ins-servold 10`]);
  await world.replace();
  await world.advance(DONE_MS);
  t.deepEqual(targetsOf(world), [`${ip} ins-servold 10`]);
  await world.stop();
});

test('a native Node with the address of a machine does not take its place', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  await world.world.join('aevil', {
    providerID: 'tencentcloud://kn-a1b2c3d4',
    addresses: [{ type: 'InternalIP', address: ip }],
    isReady: false,
  });
  await world.create('dns', { spec: PORTS });
  await world.advance(DONE_MS);
  t.deepEqual(targetsOf(world), [`${ip} ins-servn1 10`]);
  await world.stop();
});

test('a Pod in the network of a Node that names the instance of another is not bound by it', async (t) => {
  const world = await ServiceWorld.start();
  const ip = await world.join('n1');
  await world.advance(5_000);
  const providerID = 'qcloud:///100003/ins-servn1';
  await world.world.join('evil', { providerID, addresses: [{ type: 'InternalIP', address: ip }] });
  const pods = new ServicePods(world);
  await world.create('web', { metadata: { annotations: { [DIRECT]: 'true' } } });
  await pods.run('web', 'a', { node: 'evil', hostNetwork: true, ip });
  await world.advance(DONE_MS);
  t.deepEqual(targetsOf(world), []);
  t.regex(world.events('DirectAccessImpossible').join(), /web|default\/a/);
  await world.stop();
});

test('without --vpc-id an annotation of a Node is no vote on the VPC: Services are made and changed', async (t) => {
  const world = await ServiceWorld.start({ flags: ['--vpc-id='] });
  for (const name of ['n1', 'n2', 'evil']) await world.join(name);
  await world.create('before');
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 1);
  await world.patchNode('evil', { metadata: { annotations: { [SEEN]: 'vpc-evil0001/ins-servevil' } } });
  await world.advance(5_000);
  await world.create('after');
  await world.patch('before', { spec: { ports: [{ port: 81 }] } });
  await world.advance(DONE_MS);
  t.is(world.balancers().length, 2);
  t.is(world.balancers().filter(({ listeners }) => [...listeners.values()].some(({ port }) => port === 81)).length, 1);
  await world.replace();
  await world.delete('before');
  await world.advance(3 * DONE_MS);
  t.is(world.service('before'), undefined);
  t.is(world.balancers().length, 1);
  await world.stop();
});

test('without --vpc-id a Node of an instance of another VPC is left out, and is no vote against the others', async (t) => {
  const world = await ServiceWorld.start({ flags: ['--vpc-id='] });
  const ips = [await world.join('n1'), await world.join('n2')].toSorted();
  const { model } = world.world.scene.host;
  await world.join('other');
  const instance = model.state.instance('ins-servother');
  Object.assign(instance, { vpcId: 'vpc-00000002' });
  await world.replace();
  await world.create('web');
  await world.advance(DONE_MS);
  t.is(world.balancer().vpcId, VPC);
  t.deepEqual(
    targetsOf(world),
    ips.map((ip) => `${ip} ${ip === ips[0] ? 'ins-servn1' : 'ins-servn2'} 10`),
  );
  await world.stop();
});

test("a Node that registers half of the cluster's network loses it to those that come later", async (t) => {
  const world = await RouteWorld.start();
  await world.join('n1', '172.16.0.0/24');
  await world.advance(10_000);
  await world.join('evil', '172.16.128.0/17');
  await world.advance(10_000);
  await world.join('n2', '172.16.200.0/24');
  await world.join('n3', '172.16.201.0/24');
  await world.advance(DONE_MS);
  const routes = () =>
    world
      .routes()
      .map(({ cidr, gatewayIp }) => `${cidr} ${gatewayIp}`)
      .toSorted();
  const right = ['172.16.0.0/24 n1', '172.16.200.0/24 n2', '172.16.201.0/24 n3'].map((text) =>
    text.replace(/ (\w+)$/, (_, name: string) => ` ${world.ipOf(name)}`),
  );
  t.deepEqual(routes(), right);
  t.like(
    ['n1', 'n2', 'n3'].map((name) => world.networkOf(name)),
    ['False RouteCreated', 'False RouteCreated', 'False RouteCreated'],
  );
  t.regex(world.networkOf('evil') ?? '', /^True/);
  t.regex(world.world.scene.events('FailedToCreateRoute').join('\n'), /172\.16\.128\.0\/17 overlaps/);
  await world.replace();
  await world.advance(DONE_MS);
  t.deepEqual(routes(), right);
  await world.stop();
});

for (const [what, addressOf] of [
  ['of another machine', (world: RouteWorld) => world.ipOf('n1')],
  ['of nobody', () => '10.0.9.250'],
] as const)
  test(`an InternalIP ${what} leads no route away from its instance`, async (t) => {
    const world = await RouteWorld.start();
    for (const [name, cidr] of [
      ['n1', '172.16.0.0/24'],
      ['evil', '172.16.1.0/24'],
    ] as const)
      await world.join(name, cidr);
    await world.advance(DONE_MS);
    const before = world.routes();
    t.is(before.length, 2);
    const { clock, admin, host } = world.world.scene;
    const body = { status: { addresses: [{ type: 'InternalIP', address: addressOf(world) }] } };
    await clock.run(admin.patch(NODES, { name: 'evil' }, { kind: 'merge', body, subresource: 'status' }));
    host.forget();
    await world.advance(120_000);
    t.deepEqual(world.routes(), before);
    await world.replace();
    await world.advance(DONE_MS);
    t.deepEqual(world.routes(), before);
    await world.stop();
  });
