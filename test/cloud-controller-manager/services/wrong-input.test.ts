/** What a Service asks for that cannot be: each is an event that says what to do, and goes on by itself once it is done. */
import test from 'ava';
import { BACKEND_READY_GATE } from '../../../crd/names.ts';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

/** Longer than a creation, the registration of its targets, and a refusal. */
const DONE_MS = 90_000;
const LATER_MS = 700_000;

async function start(): Promise<ServiceWorld> {
  const world = await ServiceWorld.start();
  await world.join('n1');
  return world;
}

const annotated = (annotations: Readonly<Record<string, string>>) => ({ metadata: { annotations } });

test('the quota of load balancers', async (t) => {
  const world = await start();
  const { limits } = world.world.scene.host.model.state.clb;
  limits.openBalancers = 0;
  await world.create('web');
  await world.advance(DONE_MS);
  const [message = ''] = world.events('SyncLoadBalancerFailed');
  t.regex(message, /CreateLoadBalancer.*quota.*; raise the quota of load balancers.*tke-existed-lbid/);
  t.deepEqual(world.balancers(), []);
  limits.openBalancers = 1;
  await world.advance(LATER_MS);
  t.is(world.ingress('web').length, 1);
  await world.stop();
});

test('the quota of listeners', async (t) => {
  const world = await start();
  const { limits } = world.world.scene.host.model.state.clb;
  limits.listeners = 1;
  await world.create('web', { spec: { ports: [80, 81].map((port) => ({ name: `p${port}`, port })) } });
  await world.advance(DONE_MS);
  t.regex(world.events('SyncLoadBalancerFailed').join(), /CreateListener.*; raise the quota of listeners.*fewer ports/);
  limits.listeners = 2;
  await world.advance(LATER_MS);
  t.deepEqual(Object.keys(world.listeners()).toSorted(), ['TCP/80', 'TCP/81']);
  await world.stop();
});

test('a load balancer that is protected against deletion', async (t) => {
  const world = await start();
  await world.create('web');
  await world.advance(DONE_MS);
  await world.protect(world.balancer().loadBalancerId, true);
  await world.delete('web');
  await world.advance(DONE_MS);
  t.regex(world.events('DeleteLoadBalancerFailed').join(), /; take the protection off in the console, or .*mode=skip/);
  await world.patch('web', annotated({ 'service.cloud.tencent.com/mode': 'skip' }));
  await world.advance(LATER_MS);
  t.is(world.service('web'), undefined);
  t.is(world.balancers().length, 1);
  await world.stop();
});

test('a port that a listener of somebody else has', async (t) => {
  const world = await start();
  const id = await world.buy();
  const spec = { ports: [{ protocol: 'UDP', port: 53 }] };
  await world.create('dns', { ...annotated({ 'service.kubernetes.io/tke-existed-lbid': id }), spec });
  await world.advance(DONE_MS);
  t.regex(world.events('ListenerClash').join(), /port 53 of UDP: .*of-a-person.*Remove it, or use another port/);
  t.deepEqual(world.listeners(), { 'UDP/53': [] });
  await world.stop();
});

test('subnets, security groups and load balancers that are not there', async (t) => {
  const world = await start();
  await world.create(
    'subnet',
    annotated({ 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': 'subnet-nowhere0' }),
  );
  await world.advance(DONE_MS);
  t.regex(world.events('SyncLoadBalancerFailed').join(), /subnet-nowhere0.*; name what exists in the VPC/);
  await world.create('existing', annotated({ 'service.kubernetes.io/tke-existed-lbid': 'lb-nowhere00' }));
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceRefused').join(), /lb-nowhere00 does not exist in this region; name another one/);
  t.deepEqual(world.balancers(), []);
  await world.stop();
});

test('IPv6 alone, and IPv6 beside IPv4', async (t) => {
  const world = await start();
  await world.create('six', { spec: { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'] } });
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceRefused').join(), /ipFamilies has no IPv4.*add IPv4 to it/);
  t.deepEqual(world.balancers(), []);
  t.deepEqual(world.service('six')?.metadata.finalizers ?? [], []);
  await world.create('both', { spec: { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] } });
  await world.advance(DONE_MS);
  t.regex(world.events('ServiceRefused').join(), /IPv4 is served alone/);
  t.is(world.ingress('both').length, 1);
  await world.stop();
});

test('a right of the key that is missing', async (t) => {
  const world = await start();
  const fault = { kind: 'error', code: 'UnauthorizedOperation' } as const;
  const grant = world.world.scene.host.faults.add({ fault, actions: ['CreateListener'] });
  await world.create('web');
  await world.advance(DONE_MS);
  t.regex(world.events('SyncLoadBalancerFailed').join(), /CreateListener.*; .*grant/);
  grant();
  await world.advance(LATER_MS);
  t.deepEqual(Object.values(world.listeners()).flat().length, 1);
  await world.stop();
});

test('a load balancer that the cloud never finishes', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const pods = new ServicePods(world);
  await world.create('web', { metadata: { annotations: { 'service.cloud.tencent.com/direct-access': 'true' } } });
  await world.advance(DONE_MS);
  Object.assign(world.balancer(), { state: 'CREATING' });
  await world.patch('web', { spec: { ports: [{ port: 81 }] } });
  await pods.run('web', 'a', { node: 'n1', gates: [BACKEND_READY_GATE] });
  await world.advance(120_000);
  t.is(pods.condition('a', BACKEND_READY_GATE), 'False NotRegistered');
  const { host } = world.world.scene;
  host.forget();
  await world.advance(600_000);
  const reads = host.seen.filter(({ action }) => action === 'DescribeLoadBalancers').length;
  t.true(reads <= 40, `${reads} in ten minutes`);
  t.regex(world.events('SyncLoadBalancerFailed').join(), /lb-\w+ .*not running/);
  t.is(pods.condition('a', BACKEND_READY_GATE), 'True NotRegistered');
  Object.assign(world.balancer(), { state: 'NORMAL' });
  await world.advance(60_000);
  t.deepEqual(Object.keys(world.listeners()), ['TCP/81']);
  await world.stop();
});
