import test from 'ava';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import { rulesOfIngresses } from '../../../sim/kube-api/seed-roles.ts';
import { addLists, published } from '../services/published-lists.ts';
import { DIRECT, IngressWorld, ruleOf } from './ingress-world.ts';

const EXISTING = 'kubernetes.io/ingress.existLbId';
const GROUP = 'ingress.cloud.tencent.com/enable-group';
const MODE = 'ingress.cloud.tencent.com/mode';
const AUTO = 'ingress.cloud.tencent.com/auto-rewrite';
const HOST = 'www.example.com';
const DONE_MS = 90_000;
const HOUR_MS = 3_600_000;

async function startGroup(names: readonly string[]) {
  const world = await IngressWorld.start();
  await addLists(world.services, ['n1']);
  const ip = await world.serve('web');
  const id = await world.services.buy();
  const annotations = { [EXISTING]: id, [GROUP]: 'true' };
  const create = async (name: string, more: Readonly<Record<string, string>> = {}) =>
    await world.create(name, { annotations: { ...annotations, ...more }, spec: ruleOf(`/${name}`, HOST) });
  for (const name of names) await create(name);
  await world.advance(DONE_MS);
  return { world, ip, id, create };
}

const ruleNamed = (name: string) => `HTTP:80 ${HOST}/${name}`;

for (const [what, malformed] of [
  ['enable-group', { [GROUP]: 'True' }],
  ['existLbId', { [EXISTING]: 'lb 1' }],
] as const) {
  test(`a member whose ${what} is malformed keeps its rules, whose targets follow, until it goes`, async (t) => {
    const { world, create } = await startGroup(['one']);
    await world.patch('one', { annotations: malformed, spec: ruleOf('/one', HOST) });
    await world.advance(5_000);
    await create('two');
    const next = await world.pods.run('web', 'web-1', { node: 'n1' });
    await world.advance(30_000);
    await world.pods.end('web-0');
    await world.advance(DONE_MS);
    t.is(world.events('AnnotationInvalid').length, 1);
    const targets = [`${next}:8080 10`];
    t.deepEqual(world.rules(), { [ruleNamed('one')]: targets, [ruleNamed('two')]: targets });
    await world.delete('one');
    await world.advance(DONE_MS);
    t.is(world.ingress('one'), undefined);
    t.deepEqual(world.rules(), { [ruleNamed('two')]: targets });
    await world.stop();
  });
}

test('the rules of the last member that was served go with it, while another one is malformed', async (t) => {
  const { world, ip, create } = await startGroup(['one']);
  await create('bad', { [DIRECT]: 'perhaps' });
  await world.advance(DONE_MS);
  t.deepEqual(published(world.services, 'n1'), [ip]);
  await world.delete('one');
  await world.advance(DONE_MS);
  t.is(world.ingress('one'), undefined);
  t.deepEqual(world.allRules(), []);
  await world.delete('bad');
  await world.advance(DONE_MS);
  t.is(world.ingress('bad'), undefined);
  await world.stop();
});

test('a readiness gate does not wait for a group whose only member is malformed', async (t) => {
  const { world, create } = await startGroup([]);
  await create('bad', { 'ingress.cloud.tencent.com/listen-ports': '80' });
  await world.advance(DONE_MS);
  await world.pods.run('web', 'web-1', { node: 'n1', gates: [GATE] });
  await world.advance(600_000);
  t.regex(world.pods.condition('web-1', GATE) ?? '', /^True/);
  await world.stop();
});

test('a member with mode skip keeps its rules as they are, also when it goes; others are served, and may go', async (t) => {
  const { world, ip, create } = await startGroup(['one', 'two']);
  const targets = [`${ip}:8080 10`];
  await world.patch('two', { annotations: { [MODE]: 'skip' } });
  await world.patch('two', { spec: ruleOf('/else', HOST) });
  await create('three');
  await world.delete('one');
  await world.advance(DONE_MS);
  t.is(world.ingress('one'), undefined);
  t.deepEqual(world.rules(), { [ruleNamed('two')]: targets, [ruleNamed('three')]: targets });
  t.deepEqual(world.addresses('three'), [world.balancer().vip]);
  await world.delete('two');
  await world.advance(DONE_MS);
  t.is(world.ingress('two'), undefined);
  t.deepEqual(world.rules(), { [ruleNamed('two')]: targets, [ruleNamed('three')]: targets });
  // Another one may have what stays.
  const both = [...ruleOf('/three', HOST).rules, ...ruleOf('/two', HOST).rules];
  await world.patch('three', { spec: { rules: both } });
  await world.advance(DONE_MS);
  t.deepEqual(world.events('RuleClash'), []);
  await world.delete('three');
  await world.advance(DONE_MS);
  t.is(world.ingress('three'), undefined);
  await world.stop();
});

test('of a group that goes, the rules of a member with mode skip stay alone', async (t) => {
  const { world } = await startGroup(['one', 'two']);
  await world.patch('one', { annotations: { [MODE]: 'skip' } });
  await world.advance(5_000);
  await world.delete('two');
  await world.delete('one');
  await world.advance(DONE_MS);
  t.deepEqual([world.ingress('one'), world.ingress('two')], [undefined, undefined]);
  t.deepEqual(world.allRules(), [ruleNamed('one')]);
  await world.stop();
});

test('a redirect that waits keeps no member from ending, and none from having an address', async (t) => {
  const { world, id } = await startGroup(['two']);
  const ip = await world.serve('api');
  const annotations = { [EXISTING]: id, [GROUP]: 'true' };
  await world.create('one', { annotations, spec: ruleOf('/', 'b.example.com', 'api') });
  await world.advance(DONE_MS);
  world.services.world.scene.host.model.state.clb.health.say(ip, false);
  await world.makeTlsSecret('tls', 'b.example.com');
  const tls = [{ hosts: ['b.example.com'], secretName: 'tls' }];
  await world.patch('one', { annotations: { [AUTO]: 'true' }, spec: { tls } });
  await world.advance(DONE_MS);
  await world.create('three', { annotations, spec: ruleOf('/c', 'c.example.com') });
  await world.delete('two');
  await world.advance(300_000);
  t.is(world.ingress('two'), undefined);
  t.deepEqual(world.addresses('three'), [world.balancer().vip]);
  t.deepEqual(world.rules()['HTTP:80 b.example.com/'], [`${ip}:8080 10`]);
  await world.stop();
});

test('a member that lacks rights to Pods has its event, and others are served', async (t) => {
  const world = await IngressWorld.start({ hasRights: false });
  await world.services.world.scene.setRules((rules) => [...rules, ...rulesOfIngresses()]);
  await world.advance(31_000);
  await world.serve('web', { type: 'NodePort', ports: [{ name: 'http', port: 80, nodePort: 30080 }] });
  const id = await world.services.buy();
  const annotations = { [EXISTING]: id, [GROUP]: 'true' };
  await world.create('nodes', { annotations: { ...annotations, [DIRECT]: null }, spec: ruleOf('/a', HOST) });
  await world.create('pods', { annotations, spec: ruleOf('/b', HOST) });
  await world.advance(HOUR_MS / 6);
  t.is(world.events('DirectAccessImpossible').length, 1);
  t.deepEqual(Object.keys(world.rules()), [`HTTP:80 ${HOST}/a`]);
  await world.stop();
});

test('a member leaves its group for another address only when that is allowed', async (t) => {
  const { world } = await startGroup(['one', 'two']);
  await world.patch('two', { annotations: { [EXISTING]: null, [GROUP]: null } });
  await world.advance(DONE_MS);
  t.is(world.events('ImmutableChangeRefused').length, 1);
  t.deepEqual(world.allRules().toSorted(), [ruleNamed('one'), ruleNamed('two')]);
  t.is(world.services.balancers().length, 1);
  await world.patch('two', { annotations: { 'tke.cloud.tencent.com/allow-address-change': 'true' } });
  await world.advance(2 * DONE_MS);
  t.is(world.services.balancers().length, 2);
  await world.stop();
});
