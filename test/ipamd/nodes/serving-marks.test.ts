import test from 'ava';
import { decodeNode } from '../../../ipamd/cache/node-entry.ts';
import { ensureServingMarks } from '../../../ipamd/nodes/serving-marks.ts';
import { Contests } from '../../../kube/contest.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
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
