import test from 'ava';
import {
  type ClusterReader,
  type ClusterResource,
  readCluster,
} from '../../../../cli/commands/cluster/read-cluster.ts';
import type { KubeObject, ListPage } from '../../../../kube/kube-client.ts';
import { KubeError, type KubeErrorCode } from '../../../../kube/kube-error.ts';
import { UserError } from '../../../../runtime/user-error.ts';
import { cliErrorOf } from '../../agent/captured.ts';
import { NOW_MS, necObject, podObject, SAMPLE } from './sample.ts';

const ALL: readonly ClusterResource[] = ['nodes', 'pods', 'vips', 'claims', 'venis', 'eips'];
const PAGE = 2;

/** Serves objects in pages of two; `failing` says which call of which resource fails, and how. */
function readerOf(
  objects: readonly KubeObject[],
  failing: (plural: string, call: number) => KubeErrorCode | undefined = () => undefined,
) {
  const calls = new Map<string, number>();
  const progress = new Map<string, number>();
  const listPage: ClusterReader['client']['listPage'] = async (type, { continueToken }): Promise<ListPage> => {
    const call = (calls.get(type.plural) ?? 0) + 1;
    calls.set(type.plural, call);
    const code = failing(type.plural, call);
    if (code !== undefined) throw new KubeError({ code, request: `LIST ${type.plural}`, text: 'refused' });
    const all = objects.filter((object) => object.kind === type.kind);
    const from = Number(continueToken ?? 0);
    const more = from + PAGE < all.length ? { continueToken: `${from + PAGE}` } : {};
    return { items: all.slice(from, from + PAGE), resourceVersion: '1', ...more };
  };
  const reader: ClusterReader = {
    client: { listPage },
    clock: { nowMs: () => NOW_MS },
    signal: new AbortController().signal,
    onProgress: (plural, count) => void progress.set(plural, count),
  };
  return { reader, calls, progress };
}

test('readCluster: reads every page, keeps what has an address of ours, and tells how far it is', async (t) => {
  const over = { ...podObject('job-0', 'n1', ['10.0.1.12']), status: { phase: 'Succeeded', podIP: '10.0.1.12' } };
  const { reader, progress } = readerOf([...SAMPLE, over]);
  const facts = await readCluster(reader, ALL);
  t.deepEqual(
    facts.necs.map(({ key }) => key),
    ['n1', 'n2'],
  );
  t.deepEqual(facts.pods.kind === 'known' ? facts.pods.value.map(({ key }) => key) : [], [
    'shop/web-0',
    'shop/web-1',
    'shop/web-2',
  ]);
  t.is(progress.get('pods'), 4);
  t.is(facts.takenAtMs, NOW_MS);
});

test('readCluster: lists nothing that the view does not need, and says so of it', async (t) => {
  const { reader, calls } = readerOf(SAMPLE);
  const facts = await readCluster(reader, ['nodes']);
  t.deepEqual([...calls.keys()].sort(), ['nodeeniconfigs', 'nodes']);
  t.is(facts.pods.kind, 'unknown');
});

test('readCluster: begins a list again when its token grew too old, and has no object twice', async (t) => {
  const { reader } = readerOf(SAMPLE, (plural, call) => (plural === 'pods' && call === 2 ? 'EXPIRED' : undefined));
  const { pods } = await readCluster(reader, ALL);
  t.is(pods.kind === 'known' ? pods.value.length : -1, 3);
});

test('readCluster: names the right or the kind that is missing, and reads the rest', async (t) => {
  const { reader } = readerOf(SAMPLE, (plural) =>
    plural === 'pods' ? 'FORBIDDEN' : plural === 'vpcenis' ? 'NOT_FOUND' : undefined,
  );
  const { pods, venis, vips } = await readCluster(reader, ALL);
  t.like(pods, { kind: 'unknown', why: 'may not list pods' });
  t.like(venis, { kind: 'unknown', why: 'the cluster has no vpcenis.networking.tke.cloud.tencent.com' });
  t.is(vips.kind, 'known');
});

for (const [code, wanted] of [
  ['FORBIDDEN', 'FORBIDDEN'],
  ['UNAUTHORIZED', 'FORBIDDEN'],
  ['UNAVAILABLE', 'NO_CLUSTER'],
  ['EXPIRED', 'NO_CLUSTER'],
] as const) {
  test(`readCluster: gives up with ${wanted} when the NodeENIConfigs are ${code}`, async (t) => {
    const { reader } = readerOf([necObject(1, [])], (plural) => (plural === 'nodeeniconfigs' ? code : undefined));
    const error = await cliErrorOf(readCluster(reader, ALL));
    t.true(error instanceof UserError);
    t.is(error.code, wanted);
    t.not(error.next, '');
  });
}
