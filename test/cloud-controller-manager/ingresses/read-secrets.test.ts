import { inspect } from 'node:util';
import test from 'ava';
import { SecretReader } from '../../../cloud-controller-manager/ingresses/read-secrets.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import { SECRETS } from '../../../kube/resource-types.ts';
import { serviceAccountUser } from '../../../sim/kube-api/auth/tokens.ts';
import { startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { keepingLog } from './certificate-world.ts';

const ACCOUNT = 'tke-cloud-controller-manager';
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: true };
const ROLES = { ...RBAC, plural: 'roles', kind: 'Role' };
const ROLE_BINDINGS = { ...RBAC, plural: 'rolebindings', kind: 'RoleBinding' };
const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false };
const META = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'certificates', namespace: 'shop' } };
const SECOND_MS = 1_000;
const INGRESS = { key: 'shop/web', namespace: 'shop', generation: 1 };

/** An API server where the controller may get the Secrets `tls` and `gone` of the namespace `shop`. */
class SecretWorld {
  readonly clock = new VirtualClock();
  readonly lines: unknown[] = [];
  /** The Ingresses of which a Secret has changed, each time. */
  readonly changed: string[] = [];
  readonly admin: KubeClient;
  readonly reader: SecretReader;
  /** What the API server answers instead. */
  fault: KubeError | undefined;
  /** Values of each Secret instead. */
  data: Readonly<Record<string, string>> | undefined;
  /** Values of the Secrets of a namespace, which are there whatever their names are. */
  dataOf: (namespace: string) => Readonly<Record<string, string>> | undefined = () => undefined;
  /** What an answer takes besides. */
  latencyMs = 0;
  reads = 0;
  /** Secrets by what is known of them, as the metric has them. */
  readonly sources: { secrets?: () => ReadonlyMap<string, number> } = {};
  readonly #ended = new AbortController();

  constructor() {
    const { clock } = this;
    const options = { clock, latencyMs: 4, random: seededRandom(3), authorization: 'rbac' } as const;
    const server = startInProcessApi(options);
    this.admin = server.client();
    const client = server.client({ user: serviceAccountUser('kube-system', ACCOUNT), userAgent: 'test' });
    const kube: KubeClient = {
      ...client,
      get: async (...args) => {
        this.reads += 1;
        if (this.fault !== undefined) throw this.fault;
        if (this.latencyMs > 0) await clock.sleep(this.latencyMs);
        const [, { name, namespace = '' }] = args;
        const data = this.dataOf(namespace);
        const metadata = { name, namespace };
        if (data !== undefined) return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data };
        const found = await client.get(...args);
        return found === undefined || this.data === undefined ? found : { ...found, data: this.data };
      },
    };
    const deps = {
      kube,
      clock,
      log: keepingLog(this.lines),
      random: seededRandom(2),
      metrics: { sources: this.sources },
    };
    this.reader = new SecretReader(deps, (ingress) => this.changed.push(ingress));
  }

  async start(): Promise<void> {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } };
    await this.clock.run(this.admin.create(NAMESPACES, namespace));
    await this.grant(['tls', 'gone']);
    const binding = {
      ...META,
      kind: 'RoleBinding',
      roleRef: { apiGroup: RBAC.group, kind: 'Role', name: 'certificates' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'kube-system', name: ACCOUNT }],
    };
    await this.clock.run(this.admin.create(ROLE_BINDINGS, binding));
    await this.write('tls', 'one');
    this.reader.run(this.#ended.signal).catch(() => {});
  }

  async grant(resourceNames: readonly string[]): Promise<void> {
    const rules = [{ apiGroups: [''], resources: ['secrets'], resourceNames, verbs: ['get'] }];
    const ref = { namespace: 'shop', name: 'certificates' };
    const known = await this.clock.run(this.admin.get(ROLES, ref));
    if (known === undefined) await this.clock.run(this.admin.create(ROLES, { ...META, kind: 'Role', rules }));
    else await this.clock.run(this.admin.patch(ROLES, ref, { kind: 'merge', body: { rules } }));
  }

  async write(name: string, text: string): Promise<void> {
    const data = { 'tls.crt': base64(text), 'tls.key': base64(`key of ${text}`), other: base64('not ours') };
    const object: KubeObject = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'shop' },
      ...{ type: 'kubernetes.io/tls', data },
    };
    const known = await this.clock.run(this.admin.get(SECRETS, { namespace: 'shop', name }));
    await this.clock.run(
      known === undefined ? this.admin.create(SECRETS, object) : this.admin.update(SECRETS, { ...known, data }),
    );
  }

  /** What an Ingress finds. */
  facts(name: string, generation = 1) {
    return this.reader.secretsOf({ ...INGRESS, generation }, [name])(name);
  }

  stop(): void {
    this.#ended.abort();
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

test('a Secret is read by its name alone, and what is not used of it is not kept', async (t) => {
  const world = new SecretWorld();
  await world.start();
  t.deepEqual(world.facts('tls'), { kind: 'unknown' });
  await world.clock.advance(SECOND_MS);
  t.deepEqual(world.facts('tls'), {
    kind: 'found',
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': base64('one'), 'tls.key': base64('key of one') },
  });
  t.deepEqual(world.changed, ['shop/web']);
  world.stop();
});

test('missing, forbidden, and granted later; a change is found within a minute or two', async (t) => {
  const world = new SecretWorld();
  await world.start();
  const names = ['gone', 'locked', 'tls', ''];
  const find = world.reader.secretsOf(INGRESS, names);
  await world.clock.advance(SECOND_MS);
  t.deepEqual(
    names.map((name) => find(name).kind),
    ['missing', 'forbidden', 'found', 'unknown'],
  );
  await world.write('locked', 'two');
  await world.grant(['locked', 'tls']);
  await world.write('tls', 'renewed');
  await world.clock.advance(80 * SECOND_MS);
  t.deepEqual(
    names.map((name) => find(name).kind),
    ['forbidden', 'found', 'found', 'unknown'],
  );
  t.like(find('tls'), { data: { 'tls.crt': base64('renewed') } });
  t.is(world.changed.length, 6);
  world.stop();
});

test('at once when the spec of the Ingress changes, and not when it is planned again', async (t) => {
  const world = new SecretWorld();
  await world.start();
  world.facts('tls');
  await world.clock.advance(SECOND_MS);
  await world.write('tls', 'renewed');
  const before = world.reads;
  for (let time = 0; time < 10; time += 1) world.facts('tls');
  await world.clock.advance(SECOND_MS);
  t.is(world.reads, before);
  t.like(world.facts('tls', 2), { data: { 'tls.crt': base64('one') } });
  await world.clock.advance(SECOND_MS);
  t.is(world.reads, before + 1);
  t.like(world.facts('tls', 2), { data: { 'tls.crt': base64('renewed') } });
  world.stop();
});

test('what is known stays while the API server does not answer', async (t) => {
  const world = new SecretWorld();
  await world.start();
  world.facts('tls');
  await world.clock.advance(SECOND_MS);
  world.fault = new KubeError({ code: 'UNAVAILABLE', request: 'GET secrets/shop/tls', text: 'no connection' });
  await world.clock.advance(600 * SECOND_MS);
  t.is(world.facts('tls').kind, 'found');
  world.reader.secretsOf({ ...INGRESS, key: 'shop/new' }, ['gone']);
  await world.clock.advance(60 * SECOND_MS);
  t.is(world.reader.secretsOf({ ...INGRESS, key: 'shop/new' }, ['gone'])('gone').kind, 'unknown');
  world.fault = undefined;
  await world.write('tls', 'renewed');
  await world.clock.advance(120 * SECOND_MS);
  t.like(world.facts('tls'), { data: { 'tls.crt': base64('renewed') } });
  world.stop();
});

test('what no Ingress names any more is not read', async (t) => {
  const world = new SecretWorld();
  await world.start();
  world.facts('tls');
  world.reader.secretsOf({ ...INGRESS, key: 'shop/other' }, ['tls']);
  await world.clock.advance(SECOND_MS);
  t.deepEqual(world.changed, ['shop/web', 'shop/other']);
  world.reader.forget('shop/web');
  world.reader.secretsOf({ ...INGRESS, key: 'shop/other' }, []);
  const before = world.reads;
  await world.clock.advance(300 * SECOND_MS);
  t.is(world.reads, before);
  t.is(world.facts('tls').kind, 'unknown');
  world.stop();
});

test('a thousand Secrets are read five a second, after the first time', async (t) => {
  const world = new SecretWorld();
  await world.start();
  const names = Array.from({ length: 1_000 }, (_, at) => `tls-${at}`);
  await world.grant(names);
  for (const name of names) await world.write(name, 'one');
  world.reader.secretsOf(INGRESS, names);
  await world.clock.advance(10 * SECOND_MS);
  t.is(world.reads, 1_000);
  await world.clock.advance(1_000 * SECOND_MS);
  t.true(world.reads > 5_000 && world.reads < 7_000, `${world.reads} reads`);
  world.stop();
});

test('what is missing is asked for more and more rarely, and at once when the spec of its Ingress changes', async (t) => {
  const world = new SecretWorld();
  await world.start();
  const timesMs: number[] = [];
  for (let second = 0; second < 7_200; second++) {
    const before = world.reads;
    if (second === 0) world.facts('gone');
    await world.clock.advance(SECOND_MS);
    if (world.reads > before) timesMs.push(second * SECOND_MS);
  }
  const waits = timesMs.slice(1).map((atMs, at) => atMs - (timesMs[at] ?? 0));
  t.true((waits[0] ?? 0) <= 40 * SECOND_MS, `${waits}`);
  t.true(waits.length < 20 && waits.slice(-5).every((wait) => wait > 400 * SECOND_MS), `${waits}`);
  await world.write('gone', 'there');
  world.facts('gone', 2);
  await world.clock.advance(SECOND_MS);
  t.is(world.facts('gone', 2).kind, 'found');
  world.stop();
});

test('a namespace that names thousands of Secrets delays no Secret and no renewal of another, and has its own event', async (t) => {
  const world = new SecretWorld();
  await world.start();
  for (let ingress = 0; ingress < 4; ingress++) {
    const names = Array.from({ length: 1_000 }, (_, at) => `s-${ingress}-${at}`);
    world.reader.secretsOf({ key: `evil/e${ingress}`, namespace: 'evil', generation: 1 }, names);
  }
  // As an API server with the default of --kube-api-qps answers.
  world.latencyMs = 400;
  await world.clock.advance(3 * SECOND_MS);
  t.true(world.reader.isInLine('evil', 's-3-999'));
  world.facts('tls');
  await world.clock.advance(3 * SECOND_MS);
  t.is(world.facts('tls').kind, 'found');
  t.false(world.reader.isInLine('shop', 'tls'));
  await world.clock.advance(600 * SECOND_MS);
  for (const text of ['second', 'third', 'fourth']) {
    await world.write('tls', text);
    await world.clock.advance(90 * SECOND_MS);
    t.like(world.facts('tls'), { data: { 'tls.crt': base64(text) } });
  }
  world.stop();
});

test('a renewal that finds no room is an event, and never silence; another namespace has its share', async (t) => {
  const world = new SecretWorld();
  await world.start();
  const large = 'x'.repeat(100_000);
  const sized: Readonly<Record<string, string>> = {
    ...{ 'tls.crt': large, 'tls.key': large },
    ...{ qcloud_cert_id: large, qcloud_ca_cert_id: large },
  };
  world.dataOf = (namespace) => (namespace === 'evil' ? sized : undefined);
  const names = Array.from({ length: 200 }, (_, at) => `large-${at}`);
  const evil = world.reader.secretsOf({ key: 'evil/one', namespace: 'evil', generation: 1 }, names);
  await world.clock.advance(60 * SECOND_MS);
  t.true(names.some((name) => evil(name).kind === 'unkept'));
  world.facts('tls');
  await world.clock.advance(2 * SECOND_MS);
  t.is(world.facts('tls').kind, 'found');
  // The namespace that has too much learns that its renewals are not read.
  const changed = world.changed.length;
  await world.clock.advance(120 * SECOND_MS);
  const kept = names.filter((name) => evil(name).kind === 'found');
  world.dataOf = (namespace) => (namespace === 'evil' ? { ...sized, 'tls.crt': 'y'.repeat(100_000) } : undefined);
  await world.clock.advance(300 * SECOND_MS);
  t.true(kept.length > 100);
  t.true(kept.every((name) => evil(name).kind !== 'found' || isRenewed(evil(name))));
  t.true(world.changed.length > changed);
  t.true(world.sources.secrets?.().get('unkept') !== undefined);
  world.stop();
});

function isRenewed(facts: ReturnType<SecretWorld['facts']>): boolean {
  return facts.kind === 'found' && facts.data['tls.crt']?.startsWith('y') === true;
}

test('no key in what is logged', async (t) => {
  const world = new SecretWorld();
  await world.start();
  world.facts('tls');
  await world.clock.advance(SECOND_MS);
  const cause = new SyntaxError(`Unexpected token in ${base64('key of one')}`);
  const answer = { code: 'BAD_ANSWER', request: 'GET secrets/shop/tls', text: 'the answer is no JSON' } as const;
  world.fault = new KubeError(answer, { cause });
  await world.clock.advance(300 * SECOND_MS);
  const text = inspect([world.lines, world.reader], { depth: 20, showHidden: true });
  t.true(world.lines.length > 0);
  t.false(text.includes(base64('key of one').slice(0, 8)));
  world.stop();
});

test('more than may be kept is not read, which its Ingress learns, and what is known stays', async (t) => {
  const world = new SecretWorld();
  await world.start();
  const large = 'x'.repeat(100_000);
  world.data = { 'tls.crt': large, 'tls.key': large, qcloud_cert_id: large, qcloud_ca_cert_id: large };
  const names = Array.from({ length: 170 }, (_, at) => `large-${at}`);
  await world.grant(names);
  for (const name of names) await world.write(name, 'one');
  const secretOf = world.reader.secretsOf(INGRESS, names);
  await world.clock.advance(60 * SECOND_MS);
  const kinds = Map.groupBy(names, (name) => secretOf(name).kind);
  t.deepEqual([kinds.get('found')?.length, kinds.get('unkept')?.length], [167, 3]);
  t.is(world.changed.length, names.length);
  world.data = {};
  await world.clock.advance(180 * SECOND_MS);
  t.true(names.every((name) => secretOf(name).kind === 'found'));
  world.stop();
});
