import type { ExecutionContext } from 'ava';
import { LOCK_TYPES } from '../../kube/election/lock-record.ts';
import { createEventRecorder } from '../../kube/event-recorder.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import { openInformer } from '../../kube/informer.ts';
import type { KubeClient, ResourceType } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { runAsLeader } from '../../kube/leader-election.ts';
import { CONFIG_MAPS, EVENTS, NODES } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { waitUntil } from '../support/wait-until.ts';
import { configMap, textOf } from './kube-scene.ts';

/** One thing that the client and what is built on it do with any API server, in a namespace of its own. */
type ClientCase = {
  readonly title: string;
  readonly run: (t: ExecutionContext, client: KubeClient, namespace: string) => Promise<void>;
};

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: unknown) => (isKubeError(error) ? error.code : String(error)),
  );

const UNHEARD_OF: ResourceType = { group: 'example.io', version: 'v1', plural: 'x', kind: 'X', isNamespaced: true };

/** The cases; run against the API server of the tests, and against a real one where there is one. */
export const CLIENT_CASES: readonly ClientCase[] = [
  {
    title: 'openKubeClient: creates, reads, replaces, patches and deletes; tells what is wrong by its code',
    run: async (t, client, namespace) => {
      const ref = { namespace, name: 'one' };
      t.is(await client.get(CONFIG_MAPS, ref), undefined);
      const created = await client.create(CONFIG_MAPS, configMap('one', 'a', namespace));
      t.is(created.kind, 'ConfigMap');
      t.is(await codeOf(client.create(CONFIG_MAPS, configMap('one', 'b', namespace))), 'ALREADY_EXISTS');
      const updated = await client.update(CONFIG_MAPS, { ...created, data: { text: 'b' } });
      t.is(textOf(await client.get(CONFIG_MAPS, ref)), 'b');
      t.is(await codeOf(client.update(CONFIG_MAPS, { ...created, data: { text: 'c' } })), 'CONFLICT');
      await client.patch(CONFIG_MAPS, ref, { kind: 'merge', body: { data: { more: 'x' } } });
      const body = [{ op: 'replace', path: '/data/text', value: 'd' }];
      t.is(textOf(await client.patch(CONFIG_MAPS, ref, { kind: 'json', body })), 'd');
      const old = { resourceVersion: updated.metadata.resourceVersion ?? '' };
      t.is(await codeOf(client.delete(CONFIG_MAPS, ref, old)), 'CONFLICT');
      t.is(await codeOf(client.update(CONFIG_MAPS, configMap('two', '', namespace))), 'NOT_FOUND');
      t.is(await codeOf(client.create(CONFIG_MAPS, configMap('Not A Name', '', namespace))), 'INVALID');
      t.true(await client.delete(CONFIG_MAPS, ref, { uid: created.metadata.uid ?? '' }));
      t.false(await client.delete(CONFIG_MAPS, ref));
    },
  },
  {
    title: 'openKubeClient: does not take a missing definition for a missing object',
    run: async (t, client, namespace) => {
      t.is(await codeOf(client.get(UNHEARD_OF, { namespace, name: 'one' })), 'NOT_FOUND');
      t.is(await codeOf(client.delete(UNHEARD_OF, { namespace, name: 'one' })), 'NOT_FOUND');
      t.is(await codeOf(client.get(CONFIG_MAPS, { name: 'one' })), 'INVALID');
      t.is(await codeOf(client.get(CONFIG_MAPS, { namespace, name: '' })), 'INVALID');
    },
  },
  {
    title: 'openKubeClient: lists in pages, and patches the status of a node alone',
    run: async (t, client, namespace) => {
      for (const name of ['a', 'b', 'c']) await client.create(CONFIG_MAPS, configMap(name, name, namespace));
      const fieldSelector = 'metadata.name!=kube-root-ca.crt';
      const first = await client.listPage(CONFIG_MAPS, { namespace, fieldSelector, limit: 2 });
      const continueToken = first.continueToken ?? '';
      const second = await client.listPage(CONFIG_MAPS, { namespace, fieldSelector, limit: 2, continueToken });
      t.deepEqual([...first.items, ...second.items].map(textOf), ['a', 'b', 'c']);
      t.deepEqual([first.items[0]?.apiVersion, first.items[0]?.kind], ['v1', 'ConfigMap']);
      t.is(second.continueToken, undefined);
      const name = `node-of-${namespace}`;
      await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
      const condition = { type: 'NetworkUnavailable', status: 'False', reason: 'Test', message: 'test' };
      const body = { status: { conditions: [condition] }, metadata: { labels: { lost: 'yes' } } };
      const node = await client.patch(NODES, { name }, { kind: 'strategic', body, subresource: 'status' });
      t.like(node['status'], { conditions: [condition] });
      await client.delete(NODES, { name });
    },
  },
  {
    title: 'openInformer: has what the server has, after changes by many hands',
    run: async (t, client, namespace) => {
      for (let i = 0; i < 7; i++) await client.create(CONFIG_MAPS, configMap(`m${i}`, 'old', namespace));
      const stop = new AbortController();
      const informer = openInformer({
        client,
        type: CONFIG_MAPS,
        query: { namespace, fieldSelector: 'metadata.name!=kube-root-ca.crt' },
        decode: (object) => textOf(object),
        pageSize: 3,
        clock: systemClock,
        log: silentLogger,
        random: seededRandom(1),
      });
      const running = informer.start(stop.signal);
      await informer.synced(AbortSignal.timeout(10_000));
      t.is(informer.size, 7);
      await client.delete(CONFIG_MAPS, { namespace, name: 'm0' });
      await client.create(CONFIG_MAPS, configMap('last', 'new', namespace));
      const change = (text: string) => (object: object) => ({
        ...configMap('m1', text, namespace),
        ...object,
        data: { text },
      });
      const hands = ['a', 'b', 'c'].map((text) =>
        updateGuarded(client, CONFIG_MAPS, { namespace, name: 'm1' }, change(text)),
      );
      await Promise.all(hands);
      const stored = textOf(await client.get(CONFIG_MAPS, { namespace, name: 'm1' }));
      await waitUntil(() => informer.get(`${namespace}/m1`) === stored, { what: 'the last change' });
      t.is(informer.get(`${namespace}/m0`), undefined);
      t.is(informer.get(`${namespace}/last`), 'new');
      stop.abort();
      await running;
    },
  },
  {
    title: 'openKubeClient: says that a revision is too old to watch from',
    run: async (t, client, namespace) => {
      const watch = async () => {
        const query = { namespace, resourceVersion: '1' };
        for await (const event of client.watch(CONFIG_MAPS, query, AbortSignal.timeout(10_000))) return event.kind;
        return 'ended';
      };
      t.is(await codeOf(watch()), 'EXPIRED');
    },
  },
  ...(['configmap', 'lease', 'endpoints'] as const).map(
    (kind): ClientCase => ({
      title: `runAsLeader: one leads, and the other when it ends, by a ${kind}`,
      run: async (t, client, namespace) => {
        const lock = { kind, namespace, name: 'lock' } as const;
        const led: string[] = [];
        const start = (identity: string, signal: AbortSignal) =>
          runAsLeader(
            {
              client,
              lock,
              identity,
              leaseMs: 3000,
              renewMs: 300,
              retryMs: 100,
              clock: systemClock,
              log: silentLogger,
              random: seededRandom(identity.length),
            },
            async (term) => {
              led.push(`${identity} ${term.epoch}`);
              await new Promise((resolve) => term.signal.addEventListener('abort', resolve, { once: true }));
            },
            signal,
          );
        const [first, second] = [new AbortController(), new AbortController()];
        const one = start('one', first.signal);
        await waitUntil(() => led.length === 1, { what: 'the first' });
        const other = start('other', second.signal);
        const type = LOCK_TYPES[kind];
        const versionOf = async () => (await client.get(type, lock))?.metadata.resourceVersion;
        const version = await versionOf();
        await waitUntil(async () => (await versionOf()) !== version, { what: 'a renewal', everyMs: 50 });
        first.abort();
        await one;
        await waitUntil(() => led.length === 2, { what: 'the second' });
        second.abort();
        await other;
        t.deepEqual(led, ['one 1', 'other 2']);
      },
    }),
  ),
  {
    title: 'createEventRecorder: counts equal events in one',
    run: async (t, client, namespace) => {
      const options = { client, component: 'test', clock: systemClock, log: silentLogger, random: seededRandom(7) };
      const recorder = createEventRecorder(options);
      const involved = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'one' };
      const event = { involved, type: 'Warning', reason: 'SubnetExhausted', message: 'full' } as const;
      recorder.record(event);
      await recorder.flush();
      recorder.record(event);
      recorder.record(event);
      await recorder.flush();
      const { items } = await client.listPage(EVENTS, { namespace, fieldSelector: 'reason=SubnetExhausted' });
      t.deepEqual(
        items.map((one) => [one['count'], one['type'], one['message'], one['source']]),
        [[3, 'Warning', 'full', { component: 'test' }]],
      );
    },
  },
];
