/** A --vpc-id that instances contradict stays in force: nothing that works depends on who else is there. */
import test from 'ava';
import { findContradiction, type VpcWitness } from '../../../cloud-controller-manager/nodes/decide-vpc.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { UNINITIALIZED } from '../node-world.ts';
import { CLUSTER_CIDR, RouteWorld } from '../routes/route-world.ts';
import { ServiceWorld } from '../services/service-world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const [A, B] = ['vpc-00000001', 'vpc-00000002'];

test('findContradiction: it begins with two instances when all are answered, and ends with one in the VPC, or none at all', (t) => {
  const seen = (describedIn?: string, isUnanswered = false): VpcWitness => ({
    ...{ createdAt: '', describedIn, isUnanswered, isAnnotated: true, seenIn: undefined },
  });
  const unanswered = seen(undefined, true);
  const of = (before: string | undefined, ...witnesses: readonly VpcWitness[]) =>
    findContradiction(A, before, witnesses);
  t.is(of(undefined, seen(B), seen(B)), B);
  t.is(of(undefined, seen(B)), undefined, 'one kubelet says what it likes');
  t.is(of(undefined, seen(B), seen(B), unanswered), undefined, 'it may be in the VPC');
  t.is(of(undefined, seen(B), seen(B), seen(undefined)), B, 'an id that the cloud does not know is no witness');
  t.is(of(undefined, seen(B), seen(B), seen(A)), undefined);
  t.is(of(B, seen(B), unanswered), B, 'it lasts, though a Node joins or goes');
  t.is(of(B, seen(B), seen(A)), undefined);
  t.is(of(B, unanswered), undefined);
});

test('a right --vpc-id without a Node in it: one that joins by its address alone gets its providerID and its route', async (t) => {
  const world = await RouteWorld.start();
  const { scene } = world.world;
  for (const [index, name] of ['a1', 'b1', 'b2'].entries()) await world.join(name, `172.16.${index + 1}.0/24`);
  for (const name of ['b1', 'b2']) Object.assign(scene.host.model.state.instance(`ins-route${name}`), { vpcId: B });
  await world.advance(20 * MINUTE_MS);
  t.deepEqual(scene.events('ConfigInvalid'), []);
  await world.leave('a1');
  await world.advance(5 * SECOND_MS);
  t.is(scene.events('ConfigInvalid').length, 1, 'it is told within seconds');
  t.deepEqual(
    ['b1', 'b2'].map((name) => world.networkOf(name)),
    ['False RouteCreated', 'False RouteCreated'],
  );
  const address = world.world.addInstance('ins-routea2');
  const addresses = [{ type: 'InternalIP', address }];
  await world.world.join('a2', { addresses, taints: [UNINITIALIZED], podCIDR: '172.16.4.0/24' });
  await world.advance(MINUTE_MS);
  const node = world.world.node('a2');
  t.deepEqual([node?.providerId.kind, node?.isUninitialized], ['instance', false]);
  t.is(world.networkOf('a2'), 'False RouteCreated');
  t.notRegex(await world.metrics(), /_problem\{[^}]*--vpc-id/);
  await world.stop();
});

test('the tables of --routes=table are kept while --vpc-id is contradicted, and no route is removed', async (t) => {
  const world = await RouteWorld.start('--routes=table', '--route-tables=rtb-test0001');
  const blockOf = (number: number): string => `172.16.${number}.0/24`;
  const routedBlocks = (): readonly string[] =>
    world
      .routes()
      .map(({ cidr }) => cidr)
      .toSorted();
  for (const number of [1, 2, 3]) await world.join(`n${number}`, blockOf(number));
  await world.advance(10 * SECOND_MS);
  await world.replace(`--vpc-id=vpc-00000009`);
  await world.leave('n3');
  await world.join('n4', blockOf(4));
  await world.advance(5 * MINUTE_MS);
  t.deepEqual(routedBlocks(), [1, 2, 3, 4].map(blockOf));
  t.deepEqual(
    ['n1', 'n2', 'n4'].map((name) => world.networkOf(name)),
    Array(3).fill('False RouteCreated'),
  );
  await world.replace();
  await world.advance(5 * MINUTE_MS);
  t.deepEqual(routedBlocks(), [1, 2, 4].map(blockOf));
  await world.stop();
});

test('a hybrid cluster: kubelets that name instances of another VPC keep no Service from its load balancer', async (t) => {
  const world = await ServiceWorld.start();
  const { scene } = world.world;
  for (const name of ['h1', 'h2']) {
    const addresses = [{ type: 'InternalIP', address: '192.168.7.1' }];
    await world.world.join(name, { providerID: `hybrid://${name}`, addresses });
  }
  const foreign = async (name: string): Promise<void> => {
    await world.join(name);
    Object.assign(scene.host.model.state.instance(`ins-serv${name}`), { vpcId: B });
  };
  await world.create('web');
  await world.advance(30 * SECOND_MS);
  for (const [name, service] of [
    ['x1', 'second'],
    ['x2', 'third'],
  ] as const) {
    await foreign(name);
    await world.advance(MINUTE_MS);
    await world.create(service);
    await world.advance(30 * SECOND_MS);
    t.deepEqual(scene.events('ServiceRefused'), []);
  }
  t.is(world.balancers().length, 3);
  await world.stop();
});

test('load balancers keep their targets while Nodes join and go under a --vpc-id that is wrong', async (t) => {
  const world = await ServiceWorld.start();
  for (const name of ['n1', 'n2', 'n3']) await world.join(name);
  await world.create('web');
  await world.advance(30 * SECOND_MS);
  const targets = () => (world.listeners()['TCP/80'] ?? []).length;
  t.is(targets(), 3);
  await world.replace('--vpc-id=vpc-00000009');
  await world.advance(MINUTE_MS);
  await world.join('n4');
  await world.advance(MINUTE_MS);
  t.is(targets(), 4);
  const { admin, clock } = world.world.scene;
  for (const name of ['n1', 'n2', 'n3']) await clock.run(admin.delete(NODES, { name }));
  await world.advance(3 * MINUTE_MS);
  t.is(targets(), 1);
  await world.stop();
});

test('a load balancer whose address may change stays where it is under a --vpc-id that is wrong', async (t) => {
  const world = await ServiceWorld.start();
  for (const name of ['n1', 'n2']) await world.join(name);
  await world.create('web', { metadata: { annotations: { 'tke.cloud.tencent.com/allow-address-change': 'true' } } });
  await world.advance(30 * SECOND_MS);
  const [before] = [world.balancer().loadBalancerId];
  await world.replace('--vpc-id=vpc-00000009');
  await world.advance(5 * MINUTE_MS);
  t.is(world.balancer().loadBalancerId, before);
  t.is((world.listeners()['TCP/80'] ?? []).length, 2);
  await world.stop();
});

test('the problem of --vpc-id ends with the term', async (t) => {
  const world = await RouteWorld.start(`--cluster-cidr=${CLUSTER_CIDR}`, '--vpc-id=vpc-00000009');
  for (const [index, name] of ['n1', 'n2'].entries()) await world.join(name, `172.16.${index + 1}.0/24`);
  await world.advance(MINUTE_MS);
  t.regex(await world.metrics(), /_problem\{[^}]*--vpc-id[^}]*\} 1/);
  await world.stop();
  t.notRegex(await world.metrics(), /--vpc-id/);
});
