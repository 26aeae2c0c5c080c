import test from 'ava';
import { decodeNode } from '../../../ipamd/cache/node-entry.ts';
import { ensureServingMarks } from '../../../ipamd/nodes/serving-marks.ts';
import { Contests } from '../../../kube/contest.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { createInProcessKube } from '../../../sim/kube-api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const OURS = { key: 'tke.cloud.tencent.com/eni-ip-unavailable', value: 'true', effect: 'NoSchedule' };
const LATER = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
const FIRST = { key: 'example.com/held', effect: 'NoSchedule' };
const SIGNAL = new AbortController().signal;
const SERVING = { isServing: true, putsTaintOn: true, writesCondition: false, nowText: '2026-01-01T00:00:00Z' };

function writerOf(kube: KubeClient) {
  return { kube, clock: new VirtualClock(), contests: new Contests(), onContest: () => undefined };
}

/** Makes a Node, reads it, lets somebody write other taints, and brings the marks in line by what was read before. */
async function taintsAfter(
  before: readonly object[],
  meanwhile: readonly object[],
  isServing: boolean,
): Promise<unknown> {
  const kube = createInProcessKube(new VirtualClock());
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec: { taints: before } };
  const read = decodeNode(await kube.create(NODES, node));
  await kube.patch(NODES, { name: 'n' }, { kind: 'merge', body: { spec: { taints: meanwhile } } });
  await ensureServingMarks(writerOf(kube), read, { ...SERVING, isServing }, SIGNAL);
  const spec = (await kube.get(NODES, { name: 'n' }))?.['spec'];
  return (spec as { readonly taints?: unknown }).taints ?? [];
}

test('ensureServingMarks: loses no taint that came after the Node was read', async (t) => {
  t.deepEqual(await taintsAfter([FIRST, OURS], [FIRST, OURS, LATER], true), [FIRST, LATER]);
});
test('ensureServingMarks: brings no taint back that went after the Node was read', async (t) => {
  t.deepEqual(await taintsAfter([FIRST, OURS], [OURS], true), []);
});
test('ensureServingMarks: loses none where there was none before', async (t) => {
  t.deepEqual(await taintsAfter([], [LATER], false), [LATER, OURS]);
});
test('ensureServingMarks: does nothing when somebody else did it', async (t) => {
  t.deepEqual(await taintsAfter([FIRST, OURS], [FIRST], true), [FIRST]);
});
test('ensureServingMarks: leaves a Node alone that registered again', async (t) => {
  const kube = createInProcessKube(new VirtualClock());
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec: { taints: [OURS] } };
  const read = decodeNode(await kube.create(NODES, node));
  await kube.delete(NODES, { name: 'n' });
  await kube.create(NODES, { ...node, spec: { taints: [OURS, LATER] } });
  t.deepEqual((await ensureServingMarks(writerOf(kube), read, SERVING, SIGNAL)).changes, []);
});

/** A Node without marks, and a writer of them; `bring` writes what is to be there now, `change` is another client's write. */
async function openContest() {
  const kube = createInProcessKube(new VirtualClock());
  const reports: string[] = [];
  const writer = { ...writerOf(kube), onContest: (what: string) => void reports.push(what) };
  await kube.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } });
  const change = (body: object, subresource?: 'status') =>
    kube.patch(NODES, { name: 'n' }, { kind: 'merge', body, ...(subresource === undefined ? {} : { subresource }) });
  const bring = async (required: Partial<Parameters<typeof ensureServingMarks>[2]>, by: KubeClient = kube) => {
    const read = await kube.get(NODES, { name: 'n' });
    if (read === undefined) throw new Error('no Node');
    return await ensureServingMarks({ ...writer, kube: by }, decodeNode(read), { ...SERVING, ...required }, SIGNAL);
  };
  return { kube, reports, change, bring };
}

test('ensureServingMarks: writes that fail are no contest', async (t) => {
  const { kube, reports, change, bring } = await openContest();
  const failing = {
    ...kube,
    patch: () => Promise.reject(new KubeError({ code: 'UNAVAILABLE', request: 'PATCH n', text: 'no answer' })),
  };
  await change({ spec: { taints: [OURS] } });
  await bring({});
  await change({ spec: { taints: [OURS] } });
  for (let pass = 1; pass <= 4; pass++) await t.throwsAsync(bring({}, failing), { message: /no answer/ });
  t.deepEqual((await bring({})).changes, [{ kind: 'taken-off', taint: `${OURS.key}:NoSchedule` }]);
  t.deepEqual(reports, []);
});

test('ensureServingMarks: a taint that another client keeps putting back holds up no other one', async (t) => {
  const { reports, change, bring } = await openContest();
  const startupTaints = [{ key: 'example.com/startup' }];
  const startup = { key: 'example.com/startup', effect: 'NoSchedule' };
  for (let pass = 1; pass <= 8; pass++) {
    await change({ spec: { taints: pass % 2 === 0 ? [OURS] : [OURS, startup] } });
    const { changes, againMs } = await bring({ startupTaints });
    t.is(
      changes.some(({ taint }) => taint.startsWith('example.com/startup')),
      pass % 2 === 1,
    );
    t.is(againMs !== undefined, pass > 4);
  }
  t.deepEqual(reports, [`the taint ${OURS.key}:NoSchedule`, 'the taint example.com/startup:NoSchedule']);
});
