import test from 'ava';
import type { KubeClient, KubeObject, WatchEvent } from '../../kube/kube-client.ts';
import {
  CONFIG_MAPS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NODE_ENI_CONFIGS,
  NODES,
  PODS,
} from '../../kube/resource-types.ts';
import { serviceAccountUser } from '../../sim/kube-api/auth/tokens.ts';
import { type InProcessApi, startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

function configMap(name: string, data: Readonly<Record<string, string>> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data };
}

function nec(name: string, spec: object = {}): KubeObject {
  return { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig', metadata: { name }, spec };
}

function node(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name } };
}

function pod(name: string, nodeName: string): KubeObject {
  const spec = { nodeName, containers: [{ name: 'c', image: 'i' }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec };
}

function start(options: { readonly isLight?: boolean } = {}): {
  readonly clock: VirtualClock;
  readonly server: InProcessApi;
  readonly kube: KubeClient;
} {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock, ...options });
  return { clock, server, kube: server.client() };
}

/** Reads a watch in the background; what it told and how it ended can be looked at. */
function follow(kube: KubeClient, type: typeof NODES, query: { resourceVersion: string; fieldSelector?: string }) {
  const stop = new AbortController();
  const told: string[] = [];
  const ended = (async () => {
    for await (const event of kube.watch(type, query, stop.signal)) told.push(tell(event));
  })().then(
    () => 'closed',
    (error: unknown) => String((error as { code?: string }).code ?? error),
  );
  return { told, ended, stop: () => stop.abort('stopped') };
}

function tell(event: WatchEvent): string {
  return event.kind === 'bookmark'
    ? `bookmark ${event.resourceVersion}`
    : `${event.kind} ${event.object.metadata.name}`;
}

for (const isLight of [false, true]) {
  const mode = isLight ? 'light' : 'full';

  test(`in-process client, ${mode}: guards updates by the resourceVersion`, async (t) => {
    const { kube } = start({ isLight });
    const first = await kube.create(CONFIG_MAPS, configMap('a', { k: '1' }));
    const second = await kube.update(CONFIG_MAPS, { ...first, data: { k: '2' } });
    t.not(second.metadata.resourceVersion, first.metadata.resourceVersion);
    await t.throwsAsync(kube.update(CONFIG_MAPS, { ...first, data: { k: '3' } }), { code: 'CONFLICT' });
    await t.throwsAsync(kube.create(CONFIG_MAPS, configMap('a')), { code: 'ALREADY_EXISTS' });
    await t.throwsAsync(kube.update(CONFIG_MAPS, configMap('b')), { code: 'NOT_FOUND' });
    const read = await kube.get(CONFIG_MAPS, { namespace: 'default', name: 'a' });
    t.deepEqual(read?.['data'], { k: '2' });
    t.is(await kube.get(CONFIG_MAPS, { namespace: 'default', name: 'b' }), undefined);
  });

  test(`in-process client, ${mode}: keeps a deleted object until its last finalizer goes`, async (t) => {
    const { kube } = start({ isLight });
    await installKinds(kube);
    const made = await kube.create(NODE_ENI_CONFIGS, nec('n1'));
    const held = await kube.update(NODE_ENI_CONFIGS, { ...made, metadata: { ...made.metadata, finalizers: ['x/y'] } });
    const only = { uid: 'other' };
    await t.throwsAsync(kube.delete(NODE_ENI_CONFIGS, { name: 'n1' }, only), { code: 'CONFLICT' });
    t.true(await kube.delete(NODE_ENI_CONFIGS, { name: 'n1' }));
    const waiting = await kube.get(NODE_ENI_CONFIGS, { name: 'n1' });
    t.is(typeof waiting?.metadata.deletionTimestamp, 'string');
    const { finalizers: _, ...metadata } = { ...held.metadata, ...waiting?.metadata };
    await kube.update(NODE_ENI_CONFIGS, { ...held, metadata });
    t.is(await kube.get(NODE_ENI_CONFIGS, { name: 'n1' }), undefined);
    t.false(await kube.delete(NODE_ENI_CONFIGS, { name: 'n1' }));
  });

  test(`in-process client, ${mode}: tells a watch each change, and a narrow one its own`, async (t) => {
    const { clock, kube } = start({ isLight });
    const { resourceVersion } = await kube.listPage(NODES, {});
    const all = follow(kube, NODES, { resourceVersion });
    const one = follow(kube, NODES, { resourceVersion, fieldSelector: 'metadata.name=b' });
    const here = follow(kube, PODS, { resourceVersion, fieldSelector: 'spec.nodeName=b' });
    await kube.create(NODES, node('a'));
    const b = await kube.create(NODES, node('b'));
    await kube.update(NODES, { ...b, metadata: { ...b.metadata, labels: { x: 'y' } } });
    await kube.create(PODS, pod('p', 'b'));
    await kube.create(PODS, pod('q', 'a'));
    await kube.delete(NODES, { name: 'a' });
    await clock.advance(1);
    t.deepEqual(all.told, ['added a', 'added b', 'modified b', 'deleted a']);
    t.deepEqual(one.told, ['added b', 'modified b']);
    t.deepEqual(here.told, ['added p']);
    await clock.advance(60_000);
    t.regex(here.told.at(-1) ?? '', /^bookmark \d+$/);
    for (const watch of [all, one, here]) watch.stop();
    t.deepEqual(await Promise.all([all.ended, one.ended, here.ended]), ['stopped', 'stopped', 'stopped']);
  });

  test(`in-process client, ${mode}: pages a list and follows on from it`, async (t) => {
    const { kube } = start({ isLight });
    for (const name of ['a', 'b', 'c']) await kube.create(NODES, node(name));
    const first = await kube.listPage(NODES, { limit: 2 });
    await kube.create(NODES, node('d'));
    const second = await kube.listPage(NODES, { limit: 2, continueToken: first.continueToken ?? '' });
    t.deepEqual(
      [...first.items, ...second.items].map((item) => item.metadata.name),
      ['a', 'b', 'c'],
    );
    t.is(second.continueToken, undefined);
    const rest = follow(kube, NODES, { resourceVersion: second.resourceVersion });
    await new Promise((resolve) => setImmediate(resolve));
    t.deepEqual(rest.told, ['added d']);
    rest.stop();
  });
}

test('in-process client: answers 410 when the past is forgotten, and when the state was restored', async (t) => {
  const { server, kube } = start();
  const { resourceVersion } = await kube.listPage(NODES, {});
  const snapshot = server.api.store.snapshot();
  await kube.create(NODES, node('a'));
  const watch = follow(kube, NODES, { resourceVersion });
  await new Promise((resolve) => setImmediate(resolve));
  server.restore(snapshot);
  t.is(await watch.ended, 'UNAVAILABLE');
  t.is(await kube.get(NODES, { name: 'a' }), undefined);
  await kube.create(NODES, node('b'));
  server.api.store.compact();
  t.is(await follow(kube, NODES, { resourceVersion }).ended, 'EXPIRED');
});

test('in-process client: checks our kinds by their schema unless it is light', async (t) => {
  const full = start();
  await installKinds(full.kube);
  const wrong = nec('n1', { maxRouteENI: 'many' });
  await t.throwsAsync(full.kube.create(NODE_ENI_CONFIGS, wrong), { code: 'INVALID', message: /maxRouteENI/ });
  const light = start({ isLight: true });
  await installKinds(light.kube);
  await t.notThrowsAsync(light.kube.create(NODE_ENI_CONFIGS, wrong));
});

test('in-process client: allows what the roles allow', async (t) => {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock, authorization: 'rbac' });
  const stranger = server.client({ user: serviceAccountUser('kube-system', 'nobody') });
  await t.throwsAsync(stranger.get(NODES, { name: 'a' }), { code: 'FORBIDDEN' });
  t.is(await server.client().get(NODES, { name: 'a' }), undefined);
});

test('in-process client: asks webhooks as it is told, and refuses what they do not answer', async (t) => {
  let answers = true;
  const server = startInProcessApi({
    clock: new VirtualClock(),
    postToWebhook: async ({ client }, review) => {
      if (!answers) throw new Error('connection refused');
      const { request } = JSON.parse(review) as { readonly request: { readonly uid: string } };
      const patch = [{ op: 'add', path: '/metadata/annotations', value: { by: String(client['url']) } }];
      const encoded = Buffer.from(JSON.stringify(patch)).toString('base64');
      return JSON.stringify({ response: { uid: request.uid, allowed: true, patchType: 'JSONPatch', patch: encoded } });
    },
  });
  const kube = server.client();
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };
  const hook = { name: 'a.b.c', sideEffects: 'None', admissionReviewVersions: ['v1'], rules: [rule] };
  await kube.create(MUTATING_WEBHOOK_CONFIGURATIONS, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'hook' },
    webhooks: [{ ...hook, clientConfig: { url: 'https://hook/path' } }],
  });
  t.like(await kube.create(PODS, pod('a', 'n1')), { metadata: { annotations: { by: 'https://hook/path' } } });
  answers = false;
  await t.throwsAsync(kube.create(PODS, pod('b', 'n1')), { message: /failed calling webhook "a\.b\.c"/ });
  t.is(await kube.get(PODS, { namespace: 'default', name: 'b' }), undefined);
});

test('in-process client: suffers faults on the virtual clock', async (t) => {
  const { clock, server, kube } = start();
  const other = server.client({ userAgent: 'other' });
  const { heal } = server.partition('in-process');
  await t.throwsAsync(kube.create(NODES, node('a')), { code: 'UNAVAILABLE' });
  await other.create(NODES, node('a'));
  heal();
  server.api.faults.add({ verbs: ['create'], action: { kind: 'drop-after' }, times: 1 });
  await t.throwsAsync(kube.create(NODES, node('b')), { code: 'UNAVAILABLE' });
  t.is((await kube.get(NODES, { name: 'b' }))?.metadata.name, 'b');
  server.api.faults.add({ action: { kind: 'hang' }, times: 1 });
  await t.throwsAsync(clock.run(kube.get(NODES, { name: 'b' })), { code: 'TIMEOUT' });
  t.is(clock.monotonicMs(), 30_000);
  server.api.faults.add({ action: { kind: 'status', code: 429, retryAfterSeconds: 2 }, times: 1 });
  await t.throwsAsync(kube.get(NODES, { name: 'b' }), { code: 'THROTTLED' });
});
