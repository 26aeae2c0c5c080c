import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { POD_ANNOTATION } from '../../../crd/names.ts';
import { decodeDeployment, findWorkload } from '../../../ipamd/cache/find-workload.ts';
import {
  createPodDecoder,
  networkRequestOf,
  POD_BOUNDS,
  POD_INDEXES,
  PODS_BY_NODE,
  podKeyOf,
} from '../../../ipamd/cache/pod-facts.ts';
import { readClaimPod } from '../../../ipamd/guests/static/read-claim-pod.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

/** A Pod as an API server sends it, with what fills most of it: managed fields, volumes, conditions. */
function podObject(index: number, change: Readonly<Record<string, unknown>> = {}): KubeObject {
  const text = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `web-7d4b9c6f5-${index.toString(36).padStart(5, '0')}`,
      namespace: `team-${index % 20}`,
      uid: `7f0e2c1a-0000-4000-8000-${index.toString(16).padStart(12, '0')}`,
      resourceVersion: String(index),
      labels: { app: 'web', 'pod-template-hash': '7d4b9c6f5' },
      annotations: {
        'tke.cloud.tencent.com/networks': 'tke-route-eni',
        'tke.cloud.tencent.com/networks-status': 'x'.repeat(300),
        'example.com/note': 'y'.repeat(300),
      },
      managedFields: [{ manager: 'kubelet', fieldsV1: { 'f:status': { 'f:podIP': {} } } }],
    },
    spec: {
      nodeName: `10.0.${index % 250}.${index % 7}`,
      containers: [{ name: 'c', image: 'i', args: ['z'.repeat(200)] }],
    },
    status: {
      phase: 'Running',
      podIP: `10.1.${index >> 8}.${index % 256}`,
      podIPs: [{ ip: `10.1.${index >> 8}.${index % 256}` }],
    },
    ...change,
  });
  return JSON.parse(text);
}

test('createPodDecoder: keeps what is asked for, and of annotations the product alone', (t) => {
  t.deepEqual(createPodDecoder()(podObject(1)), {
    namespace: 'team-1',
    name: 'web-7d4b9c6f5-00001',
    uid: '7f0e2c1a-0000-4000-8000-000000000001',
    nodeName: '10.0.1.1',
    ips: ['10.1.0.1'],
    phase: 'Running',
    isLeaving: false,
    annotations: { 'tke.cloud.tencent.com/networks': 'tke-route-eni' },
  });
});

test('createPodDecoder: keeps nothing of a Pod without a node, in the network of its host, or over', (t) => {
  const decode = createPodDecoder();
  t.is(decode(podObject(1, { spec: {} })), undefined);
  t.is(decode(podObject(1, { spec: { nodeName: 'n', hostNetwork: true } })), undefined);
  for (const phase of ['Succeeded', 'Failed', 'nonsense']) t.is(decode(podObject(1, { status: { phase } })), undefined);
  t.like(decode(podObject(1, { status: undefined })), { phase: 'Pending', ips: [] });
});

const OURS = 'tke.cloud.tencent.com/';

/** A Pod with annotations of the product. */
function annotated(annotations: Readonly<Record<string, string>>, change: Readonly<Record<string, unknown>> = {}) {
  const object = podObject(1, change);
  const named = Object.entries(annotations).map(([name, text]) => [`${OURS}${name}`, text]);
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'u-1' };
  const metadata = {
    ...object.metadata,
    annotations: Object.fromEntries(named),
    ownerReferences: [
      { ...owner, name: 'other', controller: false },
      { ...owner, controller: true },
    ],
  };
  return createPodDecoder()({ ...object, metadata });
}

test('createPodDecoder: keeps a Pod without a node that something is prepared for, with its labels and controller', (t) => {
  const without = { spec: { containers: [] }, status: {} };
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'u-1' };
  const labels = { app: 'web', 'pod-template-hash': '7d4b9c6f5' };
  const kept = annotated({ 'vpc-ip-claim-delete-policy': 'Never' }, without);
  t.like(kept, { nodeName: '', claimInfo: { labels, owner, mode: 'route-eni' } });
  t.truthy(annotated({ 'eip-attributes': '' }, without)?.claimInfo);
  t.truthy(annotated({ 'pod-security-groups': 'sg-a1b2c3d4' }, without)?.claimInfo);
  t.is(annotated({ 'vpc-ip-claim-delete-policy': 'Immediate' }, without), undefined);
  t.is(annotated({ 'vpc-ip-claim-delete-policy': 'Immediate' })?.claimInfo, undefined);
  t.is(annotated({ networks: 'tke-route-eni' }, without), undefined);
  t.is(annotated({ 'vpc-ip-claim-delete-policy': 'Never' }, { status: { phase: 'Failed' } }), undefined);
  if (kept !== undefined) t.deepEqual(POD_INDEXES[PODS_BY_NODE](kept), []);
});

test('createPodDecoder: tells by the annotation, else by the resources, who wants an exclusive ENI', (t) => {
  const limits = { 'tke.cloud.tencent.com/direct-eni': '1' };
  const asking = { spec: { containers: [{ name: 'a' }, { name: 'b', resources: { limits } }] } };
  t.is(annotated({ 'vpc-ip-claim-delete-policy': 'Never' }, asking)?.claimInfo?.mode, 'direct-eni');
  const both = { 'vpc-ip-claim-delete-policy': 'Never', networks: 'tke-route-eni' };
  t.is(annotated(both, asking)?.claimInfo?.mode, 'route-eni');
});

test('createPodDecoder: keeps nothing of annotations that nobody reads, and little of one that is too long', (t) => {
  const long = 'x'.repeat(250_000);
  const texts = { 'nominated-eni-subnets': long, 'whatever-else': long, 'vpc-ip-claim-delete-policy': 'Never' };
  const kept = annotated(texts);
  t.deepEqual(Object.keys(kept?.annotations ?? {}), [
    `${OURS}vpc-ip-claim-delete-policy`,
    `${OURS}nominated-eni-subnets`,
  ]);
  t.true(JSON.stringify(kept).length < 1_000);
  const { request, faults } = networkRequestOf(kept ?? { annotations: {} });
  t.true(request.isStatic);
  t.deepEqual(
    faults.map(({ path }) => path),
    [`${OURS}nominated-eni-subnets`],
  );
});

test('createPodDecoder: reads both families, and the single address of an old kubelet', (t) => {
  const decode = createPodDecoder();
  const both = { phase: 'Running', podIP: '10.0.0.9', podIPs: [{ ip: '10.0.0.9' }, { ip: 'fd00::9' }] };
  t.deepEqual(decode(podObject(1, { status: both }))?.ips, ['10.0.0.9', 'fd00::9']);
  t.deepEqual(decode(podObject(1, { status: { phase: 'Running', podIP: '10.0.0.9' } }))?.ips, ['10.0.0.9']);
  t.deepEqual(decode(podObject(1, { status: { phase: 'Running', podIPs: 'nonsense' } }))?.ips, []);
});

test('POD_INDEXES, podKeyOf: find a Pod by its node and name it as caches do', (t) => {
  const pod = createPodDecoder()(podObject(3));
  t.truthy(pod);
  if (pod === undefined) return;
  t.deepEqual(POD_INDEXES[PODS_BY_NODE](pod), ['10.0.3.3']);
  t.is(podKeyOf(pod), 'team-3/web-7d4b9c6f5-00003');
});

test('createPodDecoder: a Pod takes less than 600 bytes when 30,000 are held', (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const usedBytes = (): number => {
    collect();
    return getHeapStatistics().used_heap_size;
  };
  const decode = createPodDecoder();
  const before = usedBytes();
  const pods = new Map(Array.from({ length: 30_000 }, (_, index) => [String(index), decode(podObject(index))]));
  const bytes = (usedBytes() - before) / pods.size;
  t.log(`${Math.round(bytes)} bytes a Pod, its place in a Map included`);
  t.true(bytes < 600, String(bytes));
});

test('createPodDecoder: of more labels than anybody writes only the count is kept, and no owner with a name of no object', (t) => {
  const labels = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`label-${at}`, 'value']));
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'x'.repeat(400), uid: 'u', controller: true };
  const object = podObject(1);
  const annotations = { [POD_ANNOTATION.deletePolicy]: 'Never' };
  const metadata = { ...object.metadata, annotations, labels, ownerReferences: [owner] };
  const pod = createPodDecoder()({ ...object, metadata });
  t.deepEqual(pod?.claimInfo, { labels: {}, labelCount: 2_000, mode: 'route-eni' });
  const faults = pod && readClaimPod(pod, undefined, undefined)?.rule.faults;
  t.regex(faults?.join() ?? '', /metadata.labels: expected at most 32 KiB of labels.*got 2000/);
  const replicaSet = { ...owner, name: 'web-1' };
  const owned = createPodDecoder()({ ...object, metadata: { ...metadata, ownerReferences: [replicaSet] } });
  const deployment = decodeDeployment({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name: 'any', namespace: object.metadata.namespace ?? '' },
    spec: { selector: { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] } },
  });
  // It was found by labels that the Pod seems not to have.
  t.is(owned && findWorkload(owned, [deployment]), undefined);
});

test('createPodDecoder: the annotations of one Pod share a limit, and those of a crowded namespace are cut', (t) => {
  const ids = Array.from({ length: 500 }, (_, at) => `subnet-${at}`).join();
  const { deletePolicy, nominatedSubnets, securityGroups, eipIdList, eipAttributes } = POD_ANNOTATION;
  const lists = [nominatedSubnets, securityGroups, eipIdList, eipAttributes].map((name) => [name, ids]);
  const annotations = { [deletePolicy]: 'Never', ...Object.fromEntries(lists) };
  const object = podObject(1);
  const pod = { ...object, metadata: { ...object.metadata, annotations } };
  const kept = Object.values(createPodDecoder()(pod)?.annotations ?? {});
  t.true(kept.join('').length < 18_000);
  t.true(kept.includes(ids));
  t.true(kept.some((text) => text.includes(`… (${ids.length} characters)`)));
  const narrow = POD_BOUNDS.instead(pod);
  t.is(narrow?.annotations[deletePolicy], 'Never');
  t.true(JSON.stringify(narrow).length < 1_000);
});

test('createPodDecoder: shares what many Pods have, and nothing long, which would stay when its Pod is gone', (t) => {
  const decode = createPodDecoder();
  const annotationsOf = (at: number, note: string) => {
    const object = podObject(at);
    const annotations = { [POD_ANNOTATION.deletePolicy]: 'Never', [POD_ANNOTATION.nominatedSubnets]: note };
    return decode({ ...object, metadata: { ...object.metadata, annotations } })?.annotations;
  };
  t.is(annotationsOf(1, 'subnet-a1b2c3d4'), annotationsOf(2, 'subnet-a1b2c3d4'));
  t.not(annotationsOf(1, 'x'.repeat(2_000)), annotationsOf(2, 'x'.repeat(2_000)));
});
