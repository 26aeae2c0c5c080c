import test from 'ava';
import { type Condition, withCondition } from '../../kube/conditions.ts';
import { createEventRecorder } from '../../kube/event-recorder.ts';
import { EventCorrelator } from '../../kube/events/event-correlator.ts';
import type { EventInput } from '../../kube/events/event-object.ts';
import { hasFinalizer, withFinalizer, withoutFinalizer } from '../../kube/finalizers.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { decodeWatchLine, splitLines } from '../../kube/watch-stream.ts';
import { silentLogger } from '../../runtime/log.ts';
import { startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { configMap, textOf } from './kube-scene.ts';

const ONE = { namespace: 'default', name: 'one' };

function withApi() {
  const clock = new VirtualClock();
  const api = startInProcessApi({ clock, random: seededRandom(1) });
  return { clock, api, client: api.client() };
}

const withText = (text: string) => (object: KubeObject) => ({ ...object, data: { text } });

test('updateGuarded: writes what was decided on what is there, and keeps what it does not know', async (t) => {
  const { client } = withApi();
  await client.create(CONFIG_MAPS, { ...configMap('one', 'a'), immutable: false });
  const append = (more: string) => (object: KubeObject) => withText(`${textOf(object)}${more}`)(object);
  await Promise.all(['b', 'c', 'd'].map((more) => updateGuarded(client, CONFIG_MAPS, ONE, append(more))));
  const stored = await client.get(CONFIG_MAPS, ONE);
  t.is([...(textOf(stored) ?? '')].toSorted().join(''), 'abcd');
  t.is(stored?.['immutable'], false);
});

test('updateGuarded: tries what the caller has first, and asks again when it is outdated', async (t) => {
  const { client } = withApi();
  const old = await client.create(CONFIG_MAPS, configMap('one', 'a'));
  await updateGuarded(client, CONFIG_MAPS, ONE, withText('b'), { current: old });
  const seen: (string | undefined)[] = [];
  const change = (object: KubeObject) => {
    seen.push(textOf(object));
    return withText('c')(object);
  };
  await updateGuarded(client, CONFIG_MAPS, ONE, change, { current: old });
  t.deepEqual(seen, ['a', 'b']);
});

test('updateGuarded: writes nothing when there is nothing to do, or the object is gone, or is another', async (t) => {
  const { client } = withApi();
  const old = await client.create(CONFIG_MAPS, configMap('one', 'a'));
  t.is(await updateGuarded(client, CONFIG_MAPS, ONE, () => undefined, { current: old }), old);
  await client.delete(CONFIG_MAPS, ONE);
  t.is(await updateGuarded(client, CONFIG_MAPS, ONE, withText('b'), { current: old }), undefined);
  t.is(await updateGuarded(client, CONFIG_MAPS, ONE, withText('b')), undefined);
  await client.create(CONFIG_MAPS, configMap('one', 'new'));
  const onlyOld = (object: KubeObject) =>
    object.metadata.uid === old.metadata.uid ? withText('b')(object) : undefined;
  t.is(textOf(await updateGuarded(client, CONFIG_MAPS, ONE, onlyOld, { current: old })), 'new');
});

test('updateGuarded: gives up when somebody else writes each time', async (t) => {
  const { client } = withApi();
  await client.create(CONFIG_MAPS, configMap('one', 'a'));
  let round = 0;
  const contested: KubeClient = {
    ...client,
    update: async (type, object) => {
      round += 1;
      await client.patch(type, ONE, { kind: 'merge', body: { data: { round: String(round) } } });
      return client.update(type, object);
    },
  };
  const failing = updateGuarded(contested, CONFIG_MAPS, ONE, withText('b'), { attempts: 3 });
  t.true(isKubeError(await t.throwsAsync(failing), 'CONFLICT'));
  t.is(round, 3);
});

test('withCondition: moves the time with the status only, and returns the same list when nothing changes', (t) => {
  const ready = { type: 'Ready', status: 'False', reason: 'Starting', message: 'soon' } as const;
  const first = withCondition([], ready, 't1');
  t.deepEqual(first, [{ ...ready, lastTransitionTime: 't1' }]);
  t.is(withCondition(first, ready, 't2'), first);
  const other = withCondition(first, { type: 'Other', status: 'True', reason: 'Yes' }, 't2');
  const again = withCondition(other, { type: 'Ready', status: 'False', reason: 'Waiting' }, 't3');
  t.deepEqual(again, [
    { type: 'Ready', status: 'False', reason: 'Waiting', lastTransitionTime: 't1' },
    { type: 'Other', status: 'True', reason: 'Yes', lastTransitionTime: 't2' },
  ] satisfies Condition[]);
  const up = withCondition(again, { type: 'Ready', status: 'True', reason: 'Up' }, 't4');
  t.is(up[0]?.lastTransitionTime, 't4');
});

test('withFinalizer, withoutFinalizer: change one finalizer, and return the same object when there is nothing to', (t) => {
  const object = configMap('one');
  const held = withFinalizer(withFinalizer(object, 'a'), 'b');
  t.deepEqual(held.metadata.finalizers, ['a', 'b']);
  t.is(withFinalizer(held, 'a'), held);
  t.true(hasFinalizer(held, 'b'));
  const freed = withoutFinalizer(held, 'a');
  t.deepEqual(freed.metadata.finalizers, ['b']);
  t.is(withoutFinalizer(freed, 'a'), freed);
  t.false(hasFinalizer(object, 'a'));
});

async function* bytes(...texts: readonly (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

async function linesOf(chunks: AsyncIterable<Uint8Array>, most?: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for await (const line of splitLines(chunks, 'test', most)) lines.push(line);
  return lines;
}

test('splitLines: joins what was cut anywhere, letters too, and leaves out a line that broke off', async (t) => {
  const letter = Buffer.from('ü');
  const chunks = bytes('a', 'b\nc\n\nd', letter.subarray(0, 1), letter.subarray(1), '\ne\nbroken');
  t.deepEqual(await linesOf(chunks), ['ab', 'c', 'dü', 'e']);
});

test('splitLines: refuses a line that is too long', async (t) => {
  const error = await t.throwsAsync(linesOf(bytes('12345678', '9012345'), 10));
  t.true(isKubeError(error, 'BAD_ANSWER'));
});

test('decodeWatchLine: decodes events and errors, skips what newer servers may send, refuses nonsense', (t) => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', resourceVersion: '7' } };
  const lineOf = (type: string, value: unknown) => JSON.stringify({ type, object: value });
  t.deepEqual(decodeWatchLine(lineOf('ADDED', object), 'test'), { kind: 'added', object });
  t.deepEqual(decodeWatchLine(lineOf('BOOKMARK', object), 'test'), { kind: 'bookmark', resourceVersion: '7' });
  t.is(decodeWatchLine(lineOf('PROGRESS', object), 'test'), undefined);
  const codeOf = (line: string) => {
    const error = t.throws(() => decodeWatchLine(line, 'test'));
    return isKubeError(error) ? error.code : 'none';
  };
  t.is(codeOf(lineOf('ERROR', { code: 410, reason: 'Expired' })), 'EXPIRED');
  t.is(codeOf(lineOf('ERROR', 'what')), 'UNAVAILABLE');
  for (const line of [
    '',
    '{',
    '[]',
    '{"type":"ADDED"}',
    lineOf('MODIFIED', { metadata: {} }),
    lineOf('BOOKMARK', {}),
    ...['ADDED', 'BOOKMARK'].map((type) =>
      lineOf(type, { metadata: { name: 'one', resourceVersion: '7'.repeat(5_000) } }),
    ),
  ]) {
    t.is(codeOf(line), 'BAD_ANSWER');
  }
});

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false };

function eventOf(message: string, name = 'n1'): EventInput {
  return { involved: { apiVersion: 'v1', kind: 'Node', name }, type: 'Warning', reason: 'EniFailed', message };
}

test('EventCorrelator: tells many similar events as one, and stops an object that tells too much', (t) => {
  const correlator = new EventCorrelator();
  const texts = Array.from({ length: 40 }, (_, at) => correlator.correlate(eventOf(`request ${at}`), 0)?.event.message);
  t.is(texts[9], 'request 9');
  t.is(texts[10], '(combined from similar events): request 10');
  t.is(texts.filter((text) => text !== undefined).length, 25);
  t.not(correlator.correlate(eventOf('request 1', 'n2'), 0), undefined);
  t.is(correlator.correlate(eventOf('request 1'), 299_000), undefined);
  t.not(correlator.correlate(eventOf('request 1'), 301_000), undefined);
});

test('createEventRecorder: survives an outage, writes each event once though answers are lost, and stays bounded', async (t) => {
  const { clock, api, client } = withApi();
  const outcomes: string[] = [];
  const recorder = createEventRecorder({
    client,
    component: 'test',
    clock,
    log: silentLogger,
    random: seededRandom(1),
    queueLimit: 3,
    observer: { onEvent: (outcome) => outcomes.push(outcome) },
  });
  const { heal } = api.partition();
  for (let i = 0; i < 6; i++) recorder.record(eventOf('down', `n${i}`));
  recorder.record(eventOf('down', 'n1'));
  await clock.advance(1500);
  heal();
  api.api.faults.add({ verbs: ['create'], action: { kind: 'drop-after' }, times: 1 });
  await clock.run(recorder.flush());
  const byName = api.objects('events').toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const stored = byName.map((one) => [one['involvedObject'], one['count'], one.metadata.namespace]);
  const about = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name });
  t.deepEqual(stored, [
    [about('n0'), 1, 'default'],
    [about('n1'), 2, 'default'],
    [about('n2'), 1, 'default'],
    [about('n3'), 1, 'default'],
  ]);
  t.is(outcomes.filter((outcome) => outcome === 'dropped').length, 2);
  const gone = api.objects('events')[0];
  if (gone !== undefined) api.api.store.remove('/events', gone);
  recorder.record(eventOf('down', 'n0'));
  await clock.run(recorder.flush());
  t.is(api.objects('events').length, 4);
});

test('createEventRecorder: a namespace with very many events loses its own alone, and delays those of another by a turn', async (t) => {
  const { clock, api, client } = withApi();
  const written: string[] = [];
  const counting: typeof client = {
    ...client,
    create: async (type, object, signal) => {
      written.push(object.metadata.namespace ?? '');
      return await client.create(type, object, signal);
    },
  };
  for (const name of ['greedy', 'shop'])
    await clock.run(client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  written.length = 0;
  const random = seededRandom(1);
  const options = { client: counting, component: 'test', clock, log: silentLogger, random, queueLimit: 10 };
  const recorder = createEventRecorder(options);
  const record = (namespace: string, name: string): void => {
    const involved = { apiVersion: 'v1', kind: 'Service', name, namespace };
    recorder.record({ involved, type: 'Warning', reason: 'Refused', message: 'no' });
  };
  for (let at = 0; at < 40; at++) record('greedy', `s${at}`);
  for (let at = 0; at < 3; at++) record('shop', `s${at}`);
  await clock.run(recorder.flush());
  t.is(written.filter((namespace) => namespace === 'shop').length, 3);
  t.true(written.lastIndexOf('shop') <= 6, `${written}`);
  t.true(written.length <= 20, `${written}`);
  t.is(api.objects('events').length, written.length);
});

test('createEventRecorder, withCondition: what a tenant wrote neither hides nor turns a text', async (t) => {
  const { clock, api, client } = withApi();
  const random = seededRandom(1);
  const recorder = createEventRecorder({ client, component: 'test', clock, log: silentLogger, random });
  recorder.record(eventOf('host \u202emoc.live\u200b is refused', 'n1'));
  await clock.run(recorder.flush());
  const shown = 'host \\u202emoc.live\\u200b is refused';
  t.is(api.objects('events')[0]?.['message'], shown);
  const refused = { type: 'Ready', status: 'False', reason: 'Refused' } as const;
  const message = 'host \u202emoc.live\u200b is refused';
  t.is(withCondition([], { ...refused, message }, 't1')[0]?.message, shown);
});
