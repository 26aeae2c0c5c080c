import test from 'ava';
import { type KubeApiOptions, startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { contractClient } from './contract/client.ts';
import { at, configMap } from './contract/contract-case.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

async function withServer(
  run: (server: Awaited<ReturnType<typeof startKubeApi>>, client: ReturnType<typeof contractClient>) => Promise<void>,
  options: KubeApiOptions = {},
): Promise<void> {
  const server = await startKubeApi(options);
  try {
    await run(server, contractClient(server.url, 'any'));
  } finally {
    await server.close();
  }
}

test('faults: answers with an error as often as told, then no more', (t) =>
  withServer(async (server, client) => {
    server.faults.add({ verbs: ['create'], action: { kind: 'status', code: 503, retryAfterSeconds: 1 }, times: 2 });
    const codes = [];
    for (let i = 0; i < 3; i++) codes.push((await client.call('POST', MAPS, configMap(`m${i}`))).status);
    t.deepEqual(codes, [503, 503, 201]);
    t.deepEqual(
      server.objects('configmaps').map((one) => one.metadata.name),
      ['m2'],
    );
  }));

test('faults: drop-after loses the answer and keeps the effect, drop-before neither', (t) =>
  withServer(async (server, client) => {
    server.faults.add({ verbs: ['create'], action: { kind: 'drop-after' }, times: 1 });
    await t.throwsAsync(client.call('POST', MAPS, configMap('kept')));
    server.faults.add({ verbs: ['create'], action: { kind: 'drop-before' }, times: 1 });
    await t.throwsAsync(client.call('POST', MAPS, configMap('lost')));
    t.deepEqual(
      server.objects('configmaps').map((one) => one.metadata.name),
      ['kept'],
    );
  }));

test('faults: meets only whom it is meant for', (t) =>
  withServer(async (server, client) => {
    server.faults.add({ resources: ['configmaps'], userAgent: 'tke-eni-agent', action: { kind: 'status', code: 500 } });
    t.is((await client.call('GET', MAPS)).status, 200);
    t.is((await client.call('GET', MAPS, undefined, { userAgent: 'tke-eni-agent/1' })).status, 500);
    t.is((await client.call('GET', '/api/v1/nodes', undefined, { userAgent: 'tke-eni-agent/1' })).status, 200);
  }));

test('faults: empty-list hides objects from lists, and from nothing else', (t) =>
  withServer(async (server, client) => {
    await client.call('POST', MAPS, configMap('a'));
    const lists = async () => at((await client.call('GET', MAPS)).body, 'items');
    const heal = server.faults.add({ resources: ['configmaps'], action: { kind: 'empty-list' } });
    t.deepEqual(await lists(), []);
    t.is((await client.call('GET', `${MAPS}/a`)).status, 200);
    heal();
    t.like(await lists(), { length: 1 });
  }));

test('faults: stale answers a read as it was some changes ago, and no write', (t) =>
  withServer(async (server, client) => {
    await client.call('POST', MAPS, configMap('a'));
    await client.call('POST', MAPS, configMap('b'));
    await client.call('DELETE', `${MAPS}/a`);
    const names = async () =>
      (at((await client.call('GET', MAPS)).body, 'items') as { metadata: { name: string } }[]).map(
        ({ metadata }) => metadata.name,
      );
    const stale = (changes: number) => server.faults.add({ action: { kind: 'stale', changes }, times: 1 });
    for (const [changes, expected] of [
      [1, ['a', 'b']],
      [2, ['a']],
      [99, []],
    ] as const) {
      stale(changes);
      t.deepEqual(await names(), expected);
    }
    stale(1);
    t.is((await client.call('GET', `${MAPS}/a`)).status, 200);
    stale(1);
    t.is((await client.call('DELETE', `${MAPS}/a`)).status, 404);
    t.deepEqual(await names(), ['b']);
  }));

test('faults: watch-end ends a watch cleanly', (t) =>
  withServer(async (server, client) => {
    server.faults.add({ verbs: ['watch'], action: { kind: 'watch-end', ms: 50 }, times: 1 });
    const watch = await client.watch(`${MAPS}?watch=true`);
    t.is(await watch.next(), undefined);
  }));

test('partition: refuses all until healed, and breaks watches', (t) =>
  withServer(async (server, client) => {
    const watch = await client.watch(`${MAPS}?watch=true`);
    const { heal } = server.partition();
    await t.throwsAsync(watch.next());
    await t.throwsAsync(client.call('GET', MAPS));
    heal();
    t.is((await client.call('GET', MAPS)).status, 200);
  }));

test('disconnectWatches: ends watches and nothing else', (t) =>
  withServer(async (server, client) => {
    const watch = await client.watch(`${MAPS}?watch=true`);
    server.disconnectWatches();
    await t.throwsAsync(watch.next());
    t.is((await client.call('GET', MAPS)).status, 200);
  }));

test('compact: makes a watch from before start again', (t) =>
  withServer(async (server, client) => {
    const first = await client.call('POST', MAPS, configMap('a'));
    await client.call('POST', MAPS, configMap('b'));
    server.store.compact();
    const watch = await client.watch(
      `${MAPS}?watch=true&resourceVersion=${String(at(first.body, 'metadata', 'resourceVersion'))}`,
    );
    t.is((await watch.next())?.object['reason'], 'Expired');
  }));

test('restore: an older state, to which newer lists and watches are from the future', (t) =>
  withServer(async (server, client) => {
    await client.call('POST', MAPS, configMap('a', { v: 'old' }));
    const snapshot = server.store.snapshot();
    const changed = await client.call('PUT', `${MAPS}/a`, configMap('a', { v: 'new' }));
    const seen = String(at(changed.body, 'metadata', 'resourceVersion'));
    server.restore(snapshot);
    // The client notices on its next call that its connection broke.
    await client.call('GET', MAPS).catch(() => undefined);
    t.is(at((await client.call('GET', `${MAPS}/a`)).body, 'data', 'v'), 'old');
    t.is((await client.call('GET', `${MAPS}?resourceVersion=${seen}`)).status, 504);
    // A guarded write decided on the lost state is refused.
    t.is((await client.call('PUT', `${MAPS}/a`, { ...changed.body, data: { v: 'newer' } })).status, 409);
  }));

test('watch: sends bookmarks that carry the newest revision', (t) =>
  withServer(
    async (server, client) => {
      const watch = await client.watch(`${MAPS}?watch=true&allowWatchBookmarks=true`);
      await client.call('POST', '/api/v1/namespaces/default/secrets', { metadata: { name: 'other' } });
      const revision = String(server.store.revision);
      let line = await watch.next();
      // One may have been on its way already.
      while (line?.type === 'BOOKMARK' && at(line.object, 'metadata', 'resourceVersion') !== revision)
        line = await watch.next();
      t.is(line?.type, 'BOOKMARK');
      watch.close();
    },
    { bookmarkIntervalMs: 50 },
  ));

test('garbage: what an owner leaves behind goes with it, what another owns too stays', (t) =>
  withServer(async (server, client) => {
    const owner = async (name: string) => {
      const { body } = await client.call('POST', MAPS, configMap(name));
      return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: String(at(body, 'metadata', 'uid')) };
    };
    const [one, two] = [await owner('one'), await owner('two')];
    await client.call('POST', MAPS, configMap('owned', {}, { ownerReferences: [one] }));
    await client.call('POST', MAPS, configMap('shared', {}, { ownerReferences: [one, two] }));
    await client.call('DELETE', `${MAPS}/one`);
    t.deepEqual(
      server.objects('configmaps').map((object) => object.metadata.name),
      ['shared', 'two'],
    );
  }));

test('garbage: a namespace takes its objects along, and waits for finalizers', (t) =>
  withServer(async (server, client) => {
    await client.call('POST', '/api/v1/namespaces', { metadata: { name: 'q' } });
    await client.call('POST', '/api/v1/namespaces/q/configmaps', configMap('free'));
    await client.call(
      'POST',
      '/api/v1/namespaces/q/configmaps',
      configMap('held', {}, { finalizers: ['example.io/x'] }),
    );
    await client.call('DELETE', '/api/v1/namespaces/q');
    t.deepEqual(
      server.objects('configmaps').map((object) => object.metadata.name),
      ['held'],
    );
    t.is((await client.call('POST', '/api/v1/namespaces/q/configmaps', configMap('late'))).status, 403);
    const free = { metadata: { finalizers: null } };
    await client.call('PATCH', '/api/v1/namespaces/q/configmaps/held', free, {
      contentType: 'application/merge-patch+json',
    });
    t.is((await client.call('GET', '/api/v1/namespaces/q')).status, 404);
  }));

test('garbage: in the foreground an owner waits for what it owns', (t) =>
  withServer(async (server, client) => {
    const { body } = await client.call('POST', MAPS, configMap('owner'));
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: String(at(body, 'metadata', 'uid')) };
    await client.call('POST', MAPS, configMap('free', {}, { ownerReferences: [owner] }));
    await client.call('POST', MAPS, configMap('held', {}, { ownerReferences: [owner], finalizers: ['example.io/x'] }));
    await client.call('DELETE', `${MAPS}/owner?propagationPolicy=Foreground`);
    t.deepEqual(
      server.objects('configmaps').map((object) => object.metadata.name),
      ['held', 'owner'],
    );
    const free = { metadata: { finalizers: null } };
    await client.call('PATCH', `${MAPS}/held`, free, { contentType: 'application/merge-patch+json' });
    t.deepEqual(server.objects('configmaps'), []);
  }));
