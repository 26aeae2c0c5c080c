import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { FreshStore } from '../../kube/fresh-store.ts';
import { openInformer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { silentLogger } from '../../runtime/log.ts';
import { startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { assertLaw } from '../support/law.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { configMap, textOf } from './kube-scene.ts';

type Value = { readonly revision: number };
/** The revision of each object that there is. */
type Objects = Readonly<Record<string, number>>;
type Moment = { readonly revision: number; readonly objects: Objects };

/** A server, and a cache that receives from it what it is told to: watch events in their order, and lists in parts. */
class Model {
  server: Moment = { revision: 100, objects: {} };
  readonly progress = { revision: '100', listsAsked: 1, listReceived: 1 };
  readonly cache = {
    progress: this.progress,
    get: (key: string) => versionAt(this.#cached[key]),
    keys: () => Object.keys(this.#cached),
  };
  readonly store = new FreshStore<Value>(this.cache, ({ revision }) => String(revision));
  #cached: Objects = {};
  #events: Moment[] = [];
  #list: Moment | undefined;

  /** Writes or deletes an object; returns the revision. */
  write(key: string, isDeletion = false): number {
    const revision = this.server.revision + 1;
    const { [key]: _before, ...others } = this.server.objects;
    this.server = { revision, objects: isDeletion ? others : { ...others, [key]: revision } };
    this.#events.push(this.server);
    return revision;
  }

  /** Begins a list: it has what the watch has not brought. */
  list(): void {
    this.progress.listsAsked += 1;
    this.#list = this.server;
    this.#events = [];
  }

  /** Something arrives: of a list one object or the rest, else the next event. */
  deliver(isWhole: boolean): void {
    const [first] = Object.entries(this.#list?.objects ?? {});
    const next = this.#list === undefined ? this.#events.shift() : this.#list;
    if (next === undefined) return;
    if (this.#list !== undefined && !isWhole) {
      this.#cached = { ...this.#cached, ...Object.fromEntries(first === undefined ? [] : [first]) };
      return;
    }
    this.progress.revision = String(next.revision);
    this.#cached = next.objects;
    if (this.#list !== undefined) this.progress.listReceived = this.progress.listsAsked;
    this.#list = undefined;
  }

  deliverAll(): void {
    while (this.#list !== undefined || this.#events.length > 0) this.deliver(true);
  }
}

function versionAt(revision: number | undefined): Value | undefined {
  return revision === undefined ? undefined : { revision };
}

const KEYS = ['a', 'b', 'c'];
const deed = fc.record({
  what: fc.constantFrom(
    'write',
    'delete',
    'read',
    'late answer',
    'other',
    'other deletes',
    'list',
    'deliver',
    'deliver',
  ),
  key: fc.constantFrom(...KEYS),
  isWhole: fc.boolean(),
});
type Deed = { readonly what: string; readonly key: string; readonly isWhole: boolean };
/** The last own write of an object, or read past the cache. */
type Own = { readonly revision: number; readonly isDeletion: boolean };

/** Does one deed; returns what the store was told. */
function act(model: Model, { what, key, isWhole }: Deed): Own | undefined {
  const before = model.server.objects[key];
  const note = (revision: number): Own => {
    model.store.note(key, { revision });
    return { revision, isDeletion: false };
  };
  if (what === 'list') model.list();
  else if (what === 'deliver') model.deliver(isWhole);
  else if (what === 'other') model.write(key);
  else if (what === 'write') return note(model.write(key));
  else if (what === 'late answer') {
    const revision = model.write(key);
    model.write(key, isWhole);
    model.deliverAll();
    return note(revision);
  } else if (before === undefined) return undefined;
  else if (what === 'other deletes') model.write(key, true);
  else if (what === 'read') return note(before);
  else if (what === 'delete') {
    const revision = model.write(key, true);
    model.store.noteDeleted(key, String(before));
    return { revision, isDeletion: true };
  }
  return undefined;
}

/** What is to be read, by the revisions of the server, of which the store does not know all. */
function expected(model: Model, key: string, own: Own | undefined): Value | undefined {
  const cached = model.cache.get(key);
  if (own === undefined || Number(model.progress.revision) >= own.revision) return cached;
  if (cached !== undefined && cached.revision >= own.revision) return cached;
  return own.isDeletion ? undefined : { revision: own.revision };
}

const readsOwnWrites = (t: ExecutionContext) =>
  fc.property(fc.array(deed, { maxLength: 40 }), (deeds) => {
    const model = new Model();
    const owns = new Map<string, Own>();
    for (const one of deeds) {
      const own = act(model, one);
      if (own !== undefined) owns.set(one.key, own);
      const all = KEYS.flatMap((key) => expected(model, key, owns.get(key)) ?? []);
      const read = KEYS.flatMap((key) => model.store.get(key) ?? []);
      t.deepEqual(read, all, JSON.stringify(one));
      const byRevision = (one: Value, other: Value): number => one.revision - other.revision;
      t.deepEqual([...model.store.values()].sort(byRevision), [...all].sort(byRevision));
    }
    model.deliverAll();
    for (const key of KEYS) t.deepEqual(model.store.get(key), versionAt(model.server.objects[key]));
    t.is(model.store.size, 0);
  });

test('FreshStore: a read has the own writes, and what the cache has received since', async (t) => {
  await assertLaw(t, readsOwnWrites, { numRuns: 1_000 });
});

const keepsNoMore = (t: ExecutionContext) =>
  fc.property(fc.array(fc.boolean(), { maxLength: 200 }), (deeds) => {
    const model = new Model();
    let waiting = 0;
    for (const [index, isWrite] of deeds.entries()) {
      if (!isWrite) model.deliver(true);
      waiting = Math.max(0, waiting + (isWrite ? 1 : -1));
      if (!isWrite) continue;
      // Each object is written once and never read.
      if (index % 3 === 0) {
        const revision = model.write(`object-${index}`);
        model.store.note(`object-${index}`, { revision });
      } else {
        model.store.noteDeleted(`object-${index}`, String(model.write(`object-${index}`)));
        model.write(`object-${index}`, true);
        waiting += 1;
      }
      t.true(model.store.size <= waiting, `${model.store.size} of ${waiting}`);
    }
  });

test('FreshStore: keeps no more than the cache has not received', async (t) => {
  await assertLaw(t, keepsNoMore, { numRuns: 300 });
});

test('FreshStore: an older state of a restored server counts once it was listed', (t) => {
  const model = new Model();
  model.write('a');
  model.deliverAll();
  const backup = model.server;
  for (let writes = 0; writes < 5; writes++) model.store.note('a', { revision: model.write('a') });
  model.store.note('b', { revision: model.write('b') });
  model.store.noteDeleted('c', String(model.server.revision));
  model.server = backup;
  t.deepEqual(model.store.get('a'), { revision: 106 }, 'until then the watch may be behind');
  model.list();
  model.deliver(true);
  t.deepEqual(model.store.get('a'), { revision: 101 });
  t.is(model.store.get('b'), undefined);
  model.store.note('a', { revision: model.write('a') });
  t.deepEqual(model.store.get('a'), { revision: 102 }, 'and so do writes after it');
});

test('FreshStore: a list that was asked for before a write does not undo it', (t) => {
  const model = new Model();
  model.write('a');
  model.list();
  model.store.note('a', { revision: model.write('a') });
  model.deliver(true);
  t.deepEqual(model.store.get('a'), { revision: 102 });
});

test('FreshStore: what is forgotten is as the cache has it', (t) => {
  const model = new Model();
  model.store.note('a', { revision: model.write('a') });
  model.store.forget('a');
  t.is(model.store.get('a'), undefined);
});

test('FreshStore: revisions that are not numbers have no order: the cache counts', (t) => {
  const cache = { get: () => 'x', keys: () => ['a'], progress: { revision: 'z', listsAsked: 1, listReceived: 1 } };
  const store = new FreshStore<string>(cache, (value) => value);
  store.note('a', 'y');
  t.is(store.get('a'), 'x');
  store.noteDeleted('a', 'x');
  t.is(store.get('a'), undefined, 'but the same is the same');
});

test('FreshStore: of revisions that are not numbers a deletion counts once the cache has it', (t) => {
  const objects = new Map<string, string>();
  const progress = { revision: 'a1', listsAsked: 1, listReceived: 1 };
  const cache = { get: (key: string) => objects.get(key), keys: () => objects.keys(), progress };
  const store = new FreshStore<string>(cache, (value) => value);
  store.note('a', 'a2');
  objects.set('a', 'a2');
  objects.delete('a');
  progress.revision = 'a3';
  t.is(store.get('a'), undefined);
});

test('FreshStore: an older answer replaces no newer one', (t) => {
  const model = new Model();
  const older = model.write('a');
  model.store.note('a', { revision: model.write('a') });
  model.store.note('a', { revision: older });
  t.deepEqual(model.store.get('a'), { revision: 102 });
});

test('FreshStore: after a restore a revision that comes a second time is not taken for the one before', (t) => {
  type One = { readonly revision: number; readonly generation: number };
  const cached: One = { revision: 64, generation: 16 };
  const progress = { revision: '64', listsAsked: 1, listReceived: 1 };
  const cache = { get: () => cached, keys: () => ['a'], progress };
  const store = new FreshStore<One>(
    cache,
    ({ revision }) => `${revision}`,
    ({ generation }) => generation,
  );
  const written = { revision: 64, generation: 12 };
  store.note('a', written);
  t.is(store.get('a'), written);
  t.deepEqual([...store.values()], [written]);
  progress.listsAsked = progress.listReceived = 2;
  t.is(store.get('a'), cached, 'a list counts');
});

test('FreshStore: an object whose deletion does not come about keeps no later writes', (t) => {
  const cached = new Map([['held', '5']]);
  const progress = { revision: '5', listsAsked: 1, listReceived: 1 };
  const cache = { get: (key: string) => cached.get(key), keys: () => cached.keys(), progress };
  const store = new FreshStore<string>(cache, (value) => value);
  store.noteDeleted('held', '5');
  for (let revision = 6; revision < 1_000; revision++) {
    store.note(`o${revision}`, `${revision}`);
    t.true(store.size <= 2, `${store.size}`);
    progress.revision = `${revision}`;
  }
});

const LAG_MS = 20_000;

/** An informer whose watch lags, of a server in this process. */
async function openScene() {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const server = startInProcessApi({ clock });
  const client = server.client();
  const lagging = server.client({ userAgent: 'informer' });
  server.api.faults.add({ userAgent: 'informer', verbs: ['watch'], action: { kind: 'watch-delay', ms: LAG_MS } });
  const informer = openInformer<KubeObject>({
    ...{ client: lagging, clock, log: silentLogger, random: () => 0.5 },
    type: CONFIG_MAPS,
    query: { namespace: 'default' },
    decode: (object) => object,
  });
  const store = new FreshStore<KubeObject>(informer, ({ metadata }) => metadata.resourceVersion);
  void informer.start(stop.signal);
  await clock.advance(1_000);
  const write = async (name: string, text: string): Promise<void> => {
    const known = await client.get(CONFIG_MAPS, { namespace: 'default', name });
    const object = configMap(name, text);
    store.note(`default/${name}`, await (known === undefined ? client.create : client.update)(CONFIG_MAPS, object));
  };
  const texts = () => Object.fromEntries([...store.values()].map((object) => [object.metadata.name, textOf(object)]));
  return { clock, server, client, store, write, texts, stop };
}

test('FreshStore over an informer: a write is there at once, and a later deletion when the watch brings it', async (t) => {
  const { clock, client, texts, write, store, stop } = await openScene();
  t.teardown(() => stop.abort());
  await write('one', 'first');
  await write('two', 'second');
  t.deepEqual(texts(), { one: 'first', two: 'second' });
  await client.delete(CONFIG_MAPS, { namespace: 'default', name: 'one' });
  await clock.advance(5 * LAG_MS);
  t.deepEqual(texts(), { two: 'second' });
  t.is(store.size, 0);
});

test('FreshStore over an informer: an older state of a restored server counts', async (t) => {
  const { clock, server, texts, write, stop } = await openScene();
  t.teardown(() => stop.abort());
  await write('one', 'before');
  const backup = server.api.store.snapshot();
  await write('one', 'lost');
  await write('two', 'lost too');
  server.restore(backup);
  await clock.advance(60_000);
  t.deepEqual(texts(), { one: 'before' });
});

test('FreshStore over an informer: an answer that comes after a list without the object makes none', async (t) => {
  const { clock, server, client, store, texts, write, stop } = await openScene();
  t.teardown(() => stop.abort());
  const late = await client.create(CONFIG_MAPS, configMap('one', 'late'));
  await client.delete(CONFIG_MAPS, { namespace: 'default', name: 'one' });
  await write('two', 'second');
  server.cutWatches();
  await clock.advance(5_000);
  store.note('default/one', late);
  t.deepEqual(texts(), { two: 'second' });
});
