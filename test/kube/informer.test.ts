import test from 'ava';
import { type Informer, openInformer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { type Logger, silentLogger } from '../../runtime/log.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { waitUntil } from '../support/wait-until.ts';
import { configMap, type KubeScene, type SceneOptions, textOf, withKubeScene } from './kube-scene.ts';

type Seen = { readonly changes: string[]; readonly undecodable: string[] };

/** Runs with an informer on the ConfigMaps of `default`, started and synced. */
function withInformer(
  options: SceneOptions,
  run: (scene: KubeScene, informer: Informer<string>, seen: Seen) => Promise<void>,
  prepare: (scene: KubeScene) => Promise<void> = async () => {},
): Promise<void> {
  return withKubeScene(options, async (scene) => {
    await prepare(scene);
    const seen: Seen = { changes: [], undecodable: [] };
    const informer = openInformer({
      client: scene.client,
      type: CONFIG_MAPS,
      query: { namespace: 'default' },
      decode: decodeText,
      indexes: { first: (value) => [value.slice(0, 1)] },
      pageSize: 3,
      clock: systemClock,
      log: silentLogger,
      random: seededRandom(1),
      observer: { onUndecodable: (_type, key) => seen.undecodable.push(key) },
    });
    informer.subscribe(({ key, before, after }) => seen.changes.push(`${key} ${before ?? '-'} ${after ?? '-'}`));
    const stop = new AbortController();
    const running = informer.start(stop.signal);
    try {
      await informer.synced(AbortSignal.timeout(10_000));
      await run(scene, informer, seen);
    } finally {
      stop.abort();
      await running;
    }
  });
}

function decodeText(object: KubeObject): string | undefined {
  const text = textOf(object) ?? '';
  if (text === 'nonsense') throw new Error('nonsense');
  return text === 'hidden' ? undefined : text;
}

function contentOf(informer: Informer<string>): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries([...informer.keys()].sort().map((key) => [key, informer.get(key)]));
}

async function until(informer: Informer<string>, wanted: Readonly<Record<string, string>>): Promise<void> {
  const isThere = () => JSON.stringify(contentOf(informer)) === JSON.stringify(wanted);
  const explain = () => JSON.stringify(contentOf(informer));
  await waitUntil(isThere, { what: `cache ${JSON.stringify(wanted)}`, explain });
}

const sixOf = async ({ client }: KubeScene) => {
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await client.create(CONFIG_MAPS, configMap(name, name));
};

test('openInformer: reads all pages, then follows every change', (t) =>
  withInformer(
    {},
    async ({ client }, informer, seen) => {
      t.is(informer.size, 7);
      t.true(informer.isSynced);
      seen.changes.length = 0;
      await client.create(CONFIG_MAPS, configMap('h', 'h'));
      await client.patch(
        CONFIG_MAPS,
        { namespace: 'default', name: 'a' },
        { kind: 'merge', body: { data: { text: 'hh' } } },
      );
      await client.delete(CONFIG_MAPS, { namespace: 'default', name: 'b' });
      await waitUntil(() => seen.changes.length === 3, { what: 'three changes' });
      t.deepEqual(seen.changes, ['default/h - h', 'default/a a hh', 'default/b b -']);
      t.deepEqual([...informer.byIndex('first', 'h')].sort(), ['h', 'hh']);
      t.deepEqual(informer.byIndex('first', 'a'), []);
      t.deepEqual(informer.byIndex('first', 'unheard of'), []);
    },
    sixOf,
  ));

test('openInformer: tells of the deletions that it missed, after a watch broke and its revision is too old', (t) =>
  withInformer(
    {},
    async ({ api, client }, informer, seen) => {
      const { heal } = api.partition();
      seen.changes.length = 0;
      const gone = api.objects('configmaps').find((object) => object.metadata.name === 'c');
      if (gone !== undefined) api.store.remove('/configmaps', gone);
      api.store.compact();
      t.is(informer.size, 7);
      heal();
      await waitUntil(() => informer.size === 6, { what: 'the deletion' });
      t.true(seen.changes.includes('default/c c -'));
      t.is(informer.get('default/c'), undefined);
      await client.create(CONFIG_MAPS, configMap('new', 'n'));
      await waitUntil(() => informer.get('default/new') === 'n', { what: 'a change after it' });
    },
    sixOf,
  ));

test('openInformer: sees the older state of a restored server, though its revisions went on past ours', (t) =>
  withInformer({}, async ({ api, client }, informer) => {
    await client.create(CONFIG_MAPS, configMap('before', 'b'));
    await until(informer, { 'default/before': 'b' });
    const snapshot = api.store.snapshot();
    await client.create(CONFIG_MAPS, configMap('lost', 'l'));
    await client.delete(CONFIG_MAPS, { namespace: 'default', name: 'before' });
    await until(informer, { 'default/lost': 'l' });
    api.restore(snapshot);
    for (let i = 0; i < 5; i++) {
      // Past the client: its connections broke, which a write does not survive.
      api.store.put('/configmaps', { ...configMap(`other-${i}`, '', 'kube-system') });
    }
    t.true(Number(api.store.revision) > Number(snapshot.revision) + 2);
    await until(informer, { 'default/before': 'b' });
  }));

test('openInformer: goes on through errors, refusals and pages that expire', (t) =>
  withInformer(
    {},
    async ({ api, client }, informer, seen) => {
      api.faults.add({ verbs: ['list'], resources: ['configmaps'], action: { kind: 'status', code: 500 }, times: 2 });
      api.faults.add({ verbs: ['list'], resources: ['configmaps'], action: { kind: 'drop-after' }, times: 1 });
      api.faults.add({ verbs: ['watch'], action: { kind: 'status', code: 429, retryAfterSeconds: 0 }, times: 1 });
      api.disconnectWatches();
      await client.create(CONFIG_MAPS, configMap('late', 'x'));
      await waitUntil(() => informer.get('default/late') === 'x', { what: 'the late one' });
      t.is(informer.size, 8);
      t.false(seen.changes.some((change) => change.endsWith(' -')));
    },
    sixOf,
  ));

test('openInformer: notices a connection that is silent, and opens another', (t) =>
  withInformer({ watchIdleMs: 300 }, async ({ api, client, requests }, informer) => {
    const heal = api.faults.add({ verbs: ['watch'], action: { kind: 'watch-delay', ms: 600_000 } });
    api.disconnectWatches();
    await waitUntil(() => requests.some((one) => one.verb === 'watch' && one.outcome === 'TIMEOUT'), {
      what: 'silence',
    });
    heal();
    await client.create(CONFIG_MAPS, configMap('after', 'x'));
    await waitUntil(() => informer.get('default/after') === 'x', { what: 'the change after it' });
    t.pass();
  }));

test('openInformer: a collection in which nothing changes is no failure, though the server sends nothing', async (t) => {
  const warnings: string[] = [];
  const failures: unknown[] = [];
  const log: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) };
  await withKubeScene({ watchIdleMs: 200 }, async ({ api, client, requests }) => {
    // As a server that has seen no event of the kind since it started.
    api.faults.add({ verbs: ['watch'], action: { kind: 'watch-delay', ms: 600_000 } });
    const observer = { onFailure: (_type: unknown, error: unknown) => void failures.push(error) };
    const options = { client, type: CONFIG_MAPS, decode: decodeText, clock: systemClock, log, observer };
    const informer = openInformer({ ...options, random: seededRandom(1) });
    const stop = new AbortController();
    const running = informer.start(stop.signal);
    const watches = () => requests.filter(({ verb }) => verb === 'watch').length;
    await waitUntil(() => watches() >= 3, { what: 'three silent watches' });
    t.deepEqual([warnings, failures], [[], []]);
    await client.create(CONFIG_MAPS, configMap('late', 'x'));
    await waitUntil(() => informer.get('default/late') === 'x', { what: 'the next list' });
    api.partition();
    await waitUntil(() => failures.length > 0, { what: 'a failure of the list' });
    t.true(warnings.length > 0);
    stop.abort();
    await running;
  });
});

test('openInformer: skips what cannot be decoded, once for each version, and keeps what it knew of it', (t) =>
  withInformer({}, async ({ api, client }, informer, seen) => {
    await client.create(CONFIG_MAPS, configMap('x', 'good'));
    await client.create(CONFIG_MAPS, configMap('y', 'nonsense'));
    await client.create(CONFIG_MAPS, configMap('z', 'hidden'));
    await waitUntil(() => seen.undecodable.length === 1, { what: 'the undecodable one' });
    const ref = { namespace: 'default', name: 'x' };
    await client.patch(CONFIG_MAPS, ref, { kind: 'merge', body: { data: { text: 'nonsense' } } });
    await waitUntil(() => seen.undecodable.length === 2, { what: 'the other one' });
    const lists = () => seen.changes.length;
    const before = lists();
    api.disconnectWatches();
    await client.create(CONFIG_MAPS, configMap('end', 'e'));
    await until(informer, { 'default/end': 'e', 'default/x': 'good' });
    t.deepEqual(seen.undecodable, ['default/y', 'default/x']);
    t.true(lists() > before);
    await client.delete(CONFIG_MAPS, ref);
    await until(informer, { 'default/end': 'e' });
  }));

test('openInformer: a listener that throws hinders nobody', (t) =>
  withInformer({}, async ({ client }, informer, seen) => {
    const stop = informer.subscribe(() => {
      throw new Error('listener');
    });
    await client.create(CONFIG_MAPS, configMap('one', '1'));
    await until(informer, { 'default/one': '1' });
    stop();
    t.true(seen.changes.includes('default/one - 1'));
  }));

test('openInformer: ends when aborted before it ever synced', (t) =>
  withKubeScene({}, async ({ api, client }) => {
    api.partition();
    const informer = openInformer({
      client,
      type: CONFIG_MAPS,
      decode: decodeText,
      clock: systemClock,
      log: silentLogger,
      random: seededRandom(1),
    });
    const stop = new AbortController();
    const running = informer.start(stop.signal);
    const synced = informer.synced(stop.signal);
    stop.abort(new Error('over'));
    await t.throwsAsync(synced, { message: 'over' });
    await running;
    t.false(informer.isSynced);
    t.is(informer.lastContactMs, Number.NEGATIVE_INFINITY);
  }));
