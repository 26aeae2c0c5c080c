import test from 'ava';
import { readPodCidrs } from '../../../../cli/commands/cluster/read-published.ts';
import { isPodCidrProblem, renderPodCidrs, viewOfPodCidrs } from '../../../../cli/commands/cluster/render-nodes.ts';
import { type PodCidrRecord, renderPodCidrRecord } from '../../../../crd/pod-cidr-record.ts';
import { CONFIG_MAPS } from '../../../../kube/resource-types.ts';
import { createInProcessKube, startInProcessApi } from '../../../../sim/kube-api/in-process.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const RECORD: PodCidrRecord = {
  term: 1,
  clusterCidrs: ['192.168.0.0/20'],
  serviceCidr: '192.168.12.0/22',
  maskSize: 26,
  next: 4,
  taken: [0, 1, 2, 3],
  owners: [],
  held: [],
  blocks: { total: 64, reserved: 16, used: 3, held: 1, free: 44 },
  waiting: { count: 0, nodes: [] },
  stopped: '',
};
const FULL = {
  ...RECORD,
  blocks: { total: 64, reserved: 16, used: 48, held: 0, free: 0 },
  waiting: { count: 21, nodes: Array.from({ length: 20 }, (_, node) => `n${node}`) },
};
const STOPPED = {
  ...RECORD,
  stopped: 'Node k1 got podCIDR 192.168.3.0/26 from another allocator: two would give one block',
};
const WIDE = { width: 200, isColored: false };

test('renderPodCidrs: one line where all is well', (t) => {
  const line = 'podCIDRs: /26 of 192.168.0.0/20: 3 used, 1 held, 44 free, 16 of Services and subnets\n';
  t.is(renderPodCidrs(viewOfPodCidrs(RECORD), WIDE), line);
  t.false(isPodCidrProblem(RECORD));
});

test('renderPodCidrs: names nodes without a podCIDR', (t) => {
  t.regex(renderPodCidrs(viewOfPodCidrs(FULL), WIDE), /^21 nodes without a podCIDR: n0, .*n19, …$/m);
  t.true(isPodCidrProblem(FULL));
  // One that has just registered is no problem.
  t.false(isPodCidrProblem({ ...RECORD, waiting: { count: 1, nodes: ['n1'] } }));
});

test('renderPodCidrs: says in whole why none is given, in any width', (t) => {
  t.true(isPodCidrProblem(STOPPED));
  const text = renderPodCidrs(viewOfPodCidrs(STOPPED), { width: 60, isColored: false });
  t.deepEqual(
    text.split('\n').filter((line) => line.length > 60),
    [],
  );
  t.true(text.replaceAll(/\s+/g, ' ').includes(`no podCIDR is given: ${STOPPED.stopped}`));
});

test('readPodCidrs: finds the record in any namespace, and nothing where there is none', async (t) => {
  const kube = createInProcessKube(new VirtualClock());
  const { signal } = new AbortController();
  t.deepEqual(await readPodCidrs(kube, signal), { kind: 'known', value: undefined });
  const metadata = { namespace: 'default', name: 'tke-eni-pod-cidrs' };
  await kube.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: renderPodCidrRecord(RECORD) });
  t.deepEqual(await readPodCidrs(kube, signal), { kind: 'known', value: RECORD });
});

test('readPodCidrs: says what right is missing', async (t) => {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock });
  server.api.faults.add({ resources: ['configmaps'], action: { kind: 'status', code: 403 } });
  const read = await readPodCidrs(server.client(), new AbortController().signal);
  t.like(read, { kind: 'unknown', next: 'use ClusterRole tke-eni-viewer, which may read ConfigMap tke-eni-pod-cidrs' });
});
