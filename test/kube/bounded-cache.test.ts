import test from 'ava';
import { openInformer } from '../../kube/informer.ts';
import { keptBytes } from '../../kube/kept-bytes.ts';
import type { KubeClient, KubeObject, WatchEvent } from '../../kube/kube-client.ts';
import { type CacheBounds, ObjectCache } from '../../kube/object-cache.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { silentLogger } from '../../runtime/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const BOUNDS: CacheBounds<string> = { objectBytes: 1_000, namespaceBytes: 1_500, smallBytes: 100 };

function objectOf(key: string, chars: number, resourceVersion = '1'): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  const metadata = { namespace, name, resourceVersion };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { text: 'x'.repeat(chars) } };
}

const textOf = ({ data }: KubeObject): string => (data as { text: string }).text;

function cacheOf(bounds: CacheBounds<string>) {
  const reports: string[] = [];
  const cache = new ObjectCache<string>(
    textOf,
    { length: (text) => [String(text.length)] },
    {
      onUndecodable: () => {},
      onListenerError: () => {},
      onTooLarge: (key, why) => reports.push(`${key}: ${why}`),
    },
    bounds,
  );
  return { cache, reports };
}

test('keptBytes: counts texts, entries and parts, and stops above the bound', (t) => {
  t.true(keptBytes('x'.repeat(100), 1_000) >= 100);
  const keys = Array.from({ length: 1_000 }, (_, at) => `key-${at}`);
  for (const value of [
    Object.fromEntries(keys.map((key) => [key, 1])),
    new Map(keys.map((key) => [key, 1])),
    new Set(keys),
    keys,
    [{ a: { b: keys } }],
  ]) {
    t.true(keptBytes(value, 1_000_000) > 20_000, JSON.stringify(value).slice(0, 20));
    t.true(keptBytes(value, 500) > 500);
  }
  t.is(keptBytes(7, 100), 0);
});

test('ObjectCache: does not keep what is too large, and takes away what it kept before', (t) => {
  const { cache, reports } = cacheOf({ ...BOUNDS, namespaceBytes: 10_000 });
  const changes: string[] = [];
  cache.subscribe(({ key, before, after }) => changes.push(`${key} ${before?.length} ${after?.length}`));
  cache.put(objectOf('a/one', 500));
  cache.put(objectOf('a/one', 2_000, '2'));
  cache.put(objectOf('a/one', 2_000, '2'));
  t.is(cache.size, 0);
  t.false(cache.hasAny('length', '500'));
  t.deepEqual(changes, ['a/one undefined 500', 'a/one 500 undefined']);
  t.deepEqual(reports, ['a/one: more than 1 KiB of memory']);
  cache.put(objectOf('a/one', 10, '3'));
  t.is(cache.get('a/one')?.length, 10);
  t.true(cache.hasAny('length', '10'));
});

test('ObjectCache: keeps what stands for an object that is too large', (t) => {
  const { cache } = cacheOf({ ...BOUNDS, instead: (_, key, why) => `${key} has ${why}` });
  cache.put(objectOf('a/one', 2_000));
  t.is(cache.get('a/one'), 'a/one has more than 1 KiB of memory');
  t.true(cache.hasAny('length', String(cache.get('a/one')?.length)));
});

test('ObjectCache: large objects of a namespace share its room, small ones and other namespaces have their own', (t) => {
  const { cache, reports } = cacheOf({ ...BOUNDS, objectBytes: 2_000, namespaceBytes: 2_000 });
  for (const key of ['a/one', 'a/two', 'b/one']) cache.put(objectOf(key, 600));
  cache.put(objectOf('a/three', 600));
  t.deepEqual([...cache.keys()], ['a/one', 'a/two', 'b/one']);
  t.deepEqual(reports, ['a/three: more than 2 KiB of memory together with other objects of its namespace']);
  t.false(cache.takeFreedCapacity());
  // A new version of the same object takes the place of the former one.
  cache.put(objectOf('a/one', 620, '2'));
  t.is(cache.get('a/one')?.length, 620);
  cache.remove(objectOf('a/one', 620, '3'));
  t.true(cache.takeFreedCapacity());
  t.false(cache.takeFreedCapacity());
  cache.put(objectOf('a/three', 600));
  t.is(cache.get('a/three')?.length, 600);
  cache.retainOnly(new Set(['a/three']));
  cache.put(objectOf('a/four', 600));
  t.is(cache.get('a/four')?.length, 600);
});

test('openInformer: lists again once a namespace has room for what was not kept, at most every ten minutes', async (t) => {
  const clock = new VirtualClock();
  const events: ((event: WatchEvent) => void)[] = [];
  let lists = 0;
  const listed = ['a/one', 'a/two', 'a/three'];
  const client: Pick<KubeClient, 'listPage' | 'watch'> = {
    listPage: async () => {
      lists += 1;
      return { items: listed.map((key) => objectOf(key, 600)), resourceVersion: '5' };
    },
    async *watch(_type, _query, signal) {
      while (!signal.aborted) {
        const next = Promise.withResolvers<WatchEvent>();
        events.push(next.resolve);
        signal.addEventListener('abort', () => next.reject(signal.reason), { once: true });
        yield await next.promise;
      }
    },
  };
  const bounds = { objectBytes: 2_000, namespaceBytes: 2_000, smallBytes: 100 };
  const informer = openInformer({
    ...{ client: client as KubeClient, type: CONFIG_MAPS, decode: textOf, bounds },
    ...{ indexes: { length: (text: string) => [String(text.length)] }, clock, log: silentLogger, random: () => 0 },
  });
  const stop = new AbortController();
  const running = informer.start(stop.signal);
  await clock.advance(1_000);
  t.deepEqual([...informer.keys()], ['a/one', 'a/two']);
  listed.shift();
  const tell = async (event: WatchEvent): Promise<void> => {
    events.at(-1)?.(event);
    await clock.advance(1_000);
  };
  await tell({ kind: 'deleted', object: objectOf('a/one', 600, '6') });
  t.is(lists, 1);
  await clock.advance(600_000);
  await tell({ kind: 'bookmark', resourceVersion: '7' });
  await clock.advance(5_000);
  t.is(lists, 2);
  t.deepEqual([...informer.keys()], ['a/two', 'a/three']);
  stop.abort();
  await clock.run(running);
});
