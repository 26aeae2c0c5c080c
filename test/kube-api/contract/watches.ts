import type { OpenWatch } from './client.ts';
import { at, type ContractCase, configMap, versionOf } from './contract-case.ts';

async function take(watch: OpenWatch, count: number): Promise<readonly string[]> {
  const seen: string[] = [];
  while (seen.length < count) {
    const line = await watch.next();
    if (line === undefined) return [...seen, 'END'];
    seen.push(`${line.type} ${String(at(line.object, 'metadata', 'name') ?? line.object['reason'])}`);
  }
  return seen;
}

const MERGE = { contentType: 'application/merge-patch+json' };

/** Watches: where they begin, what they see, how they end. */
export const WATCH_CASES: readonly ContractCase[] = [
  {
    title: 'watch: tells each change after a revision, in order',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps`;
      const made = await api.call('POST', path, configMap('a'));
      await api.call('POST', path, configMap('b'));
      await api.call('PATCH', `${path}/a`, { data: { a: '2' } }, MERGE);
      const watch = await api.watch(`${path}?watch=true&resourceVersion=${versionOf(made)}`);
      t.is(watch.status, 200);
      await api.call('DELETE', `${path}/b`);
      t.deepEqual(await take(watch, 3), ['ADDED b', 'MODIFIED a', 'DELETED b']);
      watch.close();
    },
  },
  {
    title: 'watch: begins with what is there when no revision is given',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/secrets`;
      await api.call('POST', path, { metadata: { name: 'a' } });
      const watch = await api.watch(`${path}?watch=true`);
      await api.call('POST', path, { metadata: { name: 'b' } });
      t.deepEqual(await take(watch, 2), ['ADDED a', 'ADDED b']);
      watch.close();
    },
  },
  {
    title: 'watch: shows an object that comes into the selection as added, one that leaves it as deleted',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps`;
      const made = await api.call('POST', path, configMap('a'));
      const watch = await api.watch(`${path}?watch=true&labelSelector=in&resourceVersion=${versionOf(made)}`);
      await api.call('PATCH', `${path}/a`, { metadata: { labels: { in: 'yes' } } }, MERGE);
      await api.call('PATCH', `${path}/a`, { data: { a: '2' } }, MERGE);
      const left = await api.call(
        'PATCH',
        `${path}/a`,
        { metadata: { labels: { in: null } }, data: { a: '3' } },
        MERGE,
      );
      t.deepEqual(await take(watch, 2), ['ADDED a', 'MODIFIED a']);
      const last = await watch.next();
      t.is(last?.type, 'DELETED');
      // As it was when last seen, at the revision of its leaving.
      t.is(at(last?.object, 'data', 'a'), '2');
      t.is(at(last?.object, 'metadata', 'resourceVersion'), versionOf(left));
      watch.close();
    },
  },
  {
    title: 'watch: follows one object by its name',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/configmaps`;
      const made = await api.call('POST', path, configMap('a'));
      const watch = await api.watch(
        `${path}?watch=true&fieldSelector=metadata.name%3Da&resourceVersion=${versionOf(made)}`,
      );
      await api.call('POST', path, configMap('b'));
      await api.call('DELETE', `${path}/a`);
      t.deepEqual(await take(watch, 1), ['DELETED a']);
      watch.close();
    },
  },
  {
    title: 'watch: ends after timeoutSeconds',
    run: async (t, api, ns) => {
      const watch = await api.watch(
        `/api/v1/namespaces/${ns}/configmaps?watch=true&resourceVersion=0&labelSelector=none&timeoutSeconds=1`,
      );
      t.deepEqual(await take(watch, 1), ['END']);
    },
  },
  {
    title: 'watch: tells that its revision is too old in the stream',
    run: async (t, api, ns) => {
      const watch = await api.watch(`/api/v1/namespaces/${ns}/configmaps?watch=true&resourceVersion=1`);
      t.is(watch.status, 200);
      const line = await watch.next();
      t.is(line?.type, 'ERROR');
      t.deepEqual([line?.object['code'], line?.object['reason']], [410, 'Expired']);
      t.regex(String(line?.object['message']), /^too old resource version: 1 \(\d+\)$/);
      t.is(await watch.next(), undefined);
    },
  },
  {
    title: 'watch: sends what is there and then a bookmark when asked for initial events',
    run: async (t, api, ns) => {
      const path = `/api/v1/namespaces/${ns}/secrets`;
      await api.call('POST', path, { metadata: { name: 'a' } });
      const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
      const watch = await api.watch(`${path}?${query}`);
      const first = await watch.next();
      if (watch.status === 422) {
        // Kubernetes 1.33 has the feature behind a gate that is off by default; the answer is a Status, not a line of a watch.
        t.regex(JSON.stringify(first), /WatchList feature gate/);
        return;
      }
      if (first?.type === 'ERROR') {
        // With an etcd before 3.5 the real server has no such feature, and says so.
        t.regex(String(first.object['message']), /RequestWatchProgress is disabled/);
        return;
      }
      t.deepEqual([first?.type, at(first?.object, 'metadata', 'name')], ['ADDED', 'a']);
      const line = await watch.next();
      t.is(line?.type, 'BOOKMARK');
      t.is(at(line?.object, 'metadata', 'annotations', 'k8s.io/initial-events-end'), 'true');
      watch.close();
    },
  },
];
