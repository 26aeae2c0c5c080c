/** One Ingress of a group, whatever its owner writes into it, keeps no other one from being served, changed or deleted. */
import test from 'ava';
import { INGRESSES } from '../../../kube/resource-types.ts';
import { DIRECT, IngressWorld, ruleOf } from './ingress-world.ts';

const EXISTING = 'kubernetes.io/ingress.existLbId';
const GROUP = 'ingress.cloud.tencent.com/enable-group';
const PORTS = 'ingress.cloud.tencent.com/listen-ports';
const MODE = 'ingress.cloud.tencent.com/mode';
const RECORD = 'tke.cloud.tencent.com/load-balancer-record';
const FINALIZER = 'networking.tke.cloud.tencent.com/load-balancer-cleanup';
const HOST = 'www.example.com';
const DONE_MS = 90_000;

/** As many paths as one Ingress may have; a group may have those of two. */
const MANY = 4_900;
const HOSTS = [HOST, 'a.example.com', 'b.example.com', 'c.example.com', 'd.example.com'] as const;

const ruleNamed = (name: string) => `HTTP:80 ${HOST}/${name}`;

async function startGroup(maxRules = 50) {
  const world = await IngressWorld.start();
  world.services.world.scene.host.model.state.clb.limits.rules = maxRules;
  const ip = await world.serve('web');
  const id = await world.services.buy();
  const group = { [EXISTING]: id, [GROUP]: 'true' };
  const create = async (name: string, more: Readonly<Record<string, string | null>> = {}, path = `/${name}`) =>
    await world.create(name, { annotations: { ...group, ...more }, spec: ruleOf(path, HOST) });
  await create('shop');
  await world.advance(DONE_MS);
  const { clock, admin } = world.services.world.scene;
  const patch = async (name: string, metadata: object) =>
    await clock.run(admin.patch(INGRESSES, { namespace: 'default', name }, { kind: 'merge', body: { metadata } }));
  const forge = async (name: string) =>
    await patch(name, {
      finalizers: [FINALIZER],
      annotations: { [RECORD]: JSON.stringify({ serial: 1, loadBalancerId: id, grouped: true }) },
    });
  return { world, id, create, patch, forge, targets: [`${ip}:8080 10`] };
}

const HOSTILE: readonly (readonly [what: string, annotations: Readonly<Record<string, string | null>>])[] = [
  ['mode skip', { [MODE]: 'skip' }],
  ['malformed ports', { 'ingress.cloud.tencent.com/listen-ports': 'nonsense' }],
  ['a record alone', { [EXISTING]: null, [GROUP]: null, [MODE]: 'skip' }],
  ['a malformed kind of access', { [DIRECT]: 'perhaps' }],
];

for (const isRestarted of [false, true])
  for (const [what, annotations] of HOSTILE)
    test(`a forged record with ${what} holds nobody${isRestarted ? ', after a restart either' : ''}`, async (t) => {
      const { world, create, forge, targets } = await startGroup();
      await create('bad', annotations);
      await forge('bad');
      if (isRestarted) await world.services.replace();
      await world.advance(5_000);
      await world.patch('shop', { spec: ruleOf('/new', HOST) });
      await create('other');
      await world.advance(DONE_MS);
      t.deepEqual(world.rules(), { [ruleNamed('new')]: targets, [ruleNamed('other')]: targets });
      t.deepEqual(world.addresses('bad'), [], 'it is none of the group');
      await world.delete('other');
      await world.advance(DONE_MS);
      t.is(world.ingress('other'), undefined);
      t.deepEqual(world.rules(), { [ruleNamed('new')]: targets });
      await world.stop();
    });

test("after a restart the rules of a member with mode skip stay, are nobody else's, and others are changed and deleted", async (t) => {
  const { world, create, targets } = await startGroup();
  await create('kept');
  await create('other');
  await world.advance(DONE_MS);
  await world.patch('kept', { annotations: { [MODE]: 'skip' } });
  await world.advance(5_000);
  await world.services.replace();
  await world.advance(5_000);
  // What it had before is not known any more; what it asks for now is not given to others.
  await create('thief', {}, '/kept');
  await world.patch('shop', { spec: ruleOf('/new', HOST) });
  await world.delete('other');
  await world.advance(DONE_MS);
  t.is(world.ingress('other'), undefined);
  t.regex(world.events('RuleClash').join(), /\/kept.* is of the Ingress default\/kept/);
  const { [ruleNamed('shop')]: before, ...rules } = world.rules();
  t.deepEqual(rules, { [ruleNamed('kept')]: targets, [ruleNamed('new')]: targets });
  t.true(before === undefined || before.length > 0);
  await world.delete('thief');
  await world.patch('kept', { annotations: { [MODE]: null } });
  await world.advance(2 * DONE_MS);
  t.deepEqual(world.rules(), { [ruleNamed('kept')]: targets, [ruleNamed('new')]: targets }, 'all are known again');
  await world.stop();
});

test('after a restart the targets of a member that is malformed follow, and others are changed and deleted', async (t) => {
  const { world, create } = await startGroup();
  await create('bad');
  await world.advance(DONE_MS);
  await world.patch('bad', { annotations: { 'ingress.cloud.tencent.com/auto-rewrite': 'perhaps' } });
  await world.advance(5_000);
  await world.services.replace();
  await world.advance(DONE_MS);
  const next = await world.pods.run('web', 'web-1', { node: 'n1' });
  await world.advance(30_000);
  await world.pods.end('web-0');
  await world.patch('shop', { spec: ruleOf('/new', HOST) });
  await world.advance(2 * DONE_MS);
  const targets = [`${next}:8080 10`];
  t.deepEqual(world.rules(), { [ruleNamed('bad')]: targets, [ruleNamed('new')]: targets });
  await world.delete('shop');
  await world.advance(DONE_MS);
  t.is(world.ingress('shop'), undefined);
  t.deepEqual(world.rules(), { [ruleNamed('bad')]: targets });
  await world.stop();
});

test('a member that its owner changes all the time holds nobody', async (t) => {
  const { world, create, patch, targets } = await startGroup();
  await create('busy', {}, '/busy');
  const stop = { isOver: false };
  const { clock } = world.services.world.scene;
  const writing = (async () => {
    for (let at = 0; !stop.isOver; at++) {
      await clock.sleep(40);
      await patch('busy', { annotations: { 'example.com/at': String(at) } }).catch(() => undefined);
    }
  })();
  await create('other');
  await world.patch('shop', { spec: ruleOf('/new', HOST) });
  await world.advance(60_000);
  const { [ruleNamed('busy')]: _, ...rules } = world.rules();
  t.deepEqual(rules, { [ruleNamed('new')]: targets, [ruleNamed('other')]: targets });
  await world.delete('other');
  await world.advance(60_000);
  t.is(world.ingress('other'), undefined);
  stop.isOver = true;
  await world.advance(1_000);
  await writing;
  await world.stop();
});

test('a member whose Secrets have new names all the time holds nobody', async (t) => {
  const { world, create, targets } = await startGroup();
  await create('busy');
  for (let at = 0; at < 12; at++) {
    await world.patch('busy', { spec: { tls: [{ hosts: [HOST], secretName: `tls-${at}` }] } });
    if (at === 2) await world.patch('shop', { spec: ruleOf('/new', HOST) });
    await world.advance(8_000);
  }
  t.deepEqual(world.rules()[ruleNamed('new')], targets);
  await world.stop();
});

for (const isRestarted of [false, true])
  test(`a member that asks for too much keeps its rules, and others are served${isRestarted ? ', after a restart too' : ''}`, async (t) => {
    const { world, create, targets } = await startGroup(4);
    const { paths = [] } = ruleOf('/', HOST).rules[0]?.http ?? {};
    const manyOf = (name: string) => {
      const many = Array.from({ length: MANY / HOSTS.length }, (_, at) => ({ ...paths[0], path: `/${name}/${at}` }));
      return { rules: HOSTS.map((host) => ({ host, http: { paths: many } })) };
    };
    const grow = async (name: string, port: number) =>
      await world.patch(name, { annotations: { [PORTS]: JSON.stringify([{ HTTP: port }]) }, spec: manyOf(name) });
    for (const name of ['big', 'grown', 'young']) {
      await create(name);
      await world.advance(2_000);
    }
    await grow('shop', 81);
    await grow('big', 82);
    await world.advance(DONE_MS);
    const ofPort80 = () => Object.fromEntries(Object.entries(world.rules()).filter(([name]) => name.includes(':80 ')));
    t.deepEqual(ofPort80(), { [ruleNamed('grown')]: targets, [ruleNamed('young')]: targets });
    await grow('grown', 80);
    await world.advance(DONE_MS);
    t.regex(world.events('IngressRefused').join(), /14700 rules by this Ingress/);
    t.deepEqual(ofPort80(), { [ruleNamed('grown')]: targets, [ruleNamed('young')]: targets });
    if (isRestarted) {
      await world.services.replace();
      await world.advance(DONE_MS);
    }
    await world.patch('young', { spec: ruleOf('/new', HOST) });
    await create('thief', {}, '/grown/0');
    await world.advance(DONE_MS);
    t.deepEqual(ofPort80(), {
      [ruleNamed('grown')]: targets,
      [ruleNamed('new')]: targets,
      ...(isRestarted ? {} : { [ruleNamed('grown/0')]: targets }),
    });
    await world.delete('young');
    await world.advance(DONE_MS);
    t.is(world.ingress('young'), undefined);
    await world.delete('thief');
    await world.patch('grown', { spec: ruleOf('/small', HOST) });
    await world.advance(2 * DONE_MS);
    t.deepEqual(ofPort80(), { [ruleNamed('small')]: targets }, 'all are known again');
    await world.stop();
  });
