import test from 'ava';
import fc from 'fast-check';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { countSlots } from '../../ipamd/decide/count-slots.ts';
import { KINDS } from '../../ipamd/decide/eni-kinds.ts';
import type { NodeView } from '../../ipamd/decide/node-view.ts';
import { decideFit } from '../../scheduler/decide/decide-fit.ts';
import { buildFitContext } from '../../scheduler/decide/fit-context.ts';
import { readPodRequest } from '../../scheduler/index/pod-request.ts';
import { assertLaw } from '../support/law.ts';
import { NOW, rebuilt } from './index-scene.ts';
import { necOf, podOf } from './scheduler-scene.ts';

const IPS_PER_ENI = 9;
const STAMP = { leaderEpoch: 1, requestTimeoutSeconds: 30, recordedAt: '2026-01-01T00:00:00Z' } as const;

const ENI = fc.record({
  mode: fc.constantFrom('route-eni' as const, 'direct-eni' as const),
  state: fc.constantFrom('Attaching' as const, 'Attached' as const, 'Detaching' as const),
  draining: fc.boolean(),
  isOnInstance: fc.boolean(),
  isExtension: fc.boolean(),
  isBeingAttached: fc.boolean(),
});
const CREATION = fc.constantFrom(
  { ipCount: 5 },
  { claim: 'default/web-0', ipCount: 1 },
  { claim: 'default/web-0' },
  { tags: { 'tke-eni-mode': 'direct-eni' } },
);
const NODE = fc.record({
  enis: fc.array(ENI, { maxLength: 5 }),
  creations: fc.array(CREATION, { maxLength: 2 }),
  maxRouteENI: fc.nat(5),
  standard: fc.nat(5),
  extension: fc.nat(3),
});
type Node = typeof NODE extends fc.Arbitrary<infer T> ? T : never;

function statusOf({ enis, creations, standard, extension }: Node): NodeEniConfigStatus {
  const attach = enis.flatMap(({ isBeingAttached }, index) => (isBeingAttached ? [index] : []));
  return {
    instanceENIs: standard,
    ...(extension > 0 ? { extensionENIs: extension } : {}),
    eniInfos: enis.map(({ mode, state, draining, isOnInstance, isExtension }, index) => ({
      eniID: `eni-${index}`,
      mac: `20:90:6f:00:00:0${index}`,
      subnetID: 'subnet-a',
      ...{ mode, state, draining },
      ...(isOnInstance ? { deviceIndex: index + 1 } : {}),
      ...(isExtension && mode === 'direct-eni' ? { attachType: 'extension' as const } : {}),
      addresses: [],
    })),
    intents: [
      ...creations.map((creation, index) => ({
        ...{ id: `c-${index}`, action: 'CreateNetworkInterface' as const, phase: 'Recorded' as const },
        ...{ resourceName: `name-${index}`, subnetID: 'subnet-a', ...STAMP, ...creation },
      })),
      ...attach.map((index) => ({
        ...{ id: `a-${index}`, action: 'AttachNetworkInterface' as const, phase: 'Recorded' as const },
        ...{ eniID: `eni-${index}`, ...STAMP },
      })),
    ],
  };
}

function viewOf(node: Node, status: NodeEniConfigStatus): NodeView {
  return {
    ...{ nodeName: 'n1', uid: 'uid-1', spec: {}, status, leaving: 'no', floor: 0, initialDemand: 0 },
    instance: {
      ...{ instanceId: 'ins-1', instanceType: 'S5', zone: 'z', vpcId: 'vpc-1', isRunning: true },
      ...{ secondaryEnis: node.standard, extensionEnis: node.extension, secondaryIpsPerEni: IPS_PER_ENI },
    },
    ...{ maxRouteENI: node.maxRouteENI, maxIPPerENI: IPS_PER_ENI, subnets: [], securityGroups: undefined },
    ...{ blocked: new Set(), stuck: new Set() },
  };
}

test('SchedulerIndex: counts the ENIs that a node can still have as ipamd does', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(NODE, (node) => {
        const status = statusOf(node);
        const view = viewOf(node, status);
        const supply = countSlots(KINDS.shared, view, status);
        const nec = necOf({ name: 'n1', maxRouteENI: node.maxRouteENI, maxIPPerENI: IPS_PER_ENI, status });
        const known = rebuilt({ necs: [nec] }).node('n1');
        t.is(known?.supply?.moreEnis, supply.freeEnis);
        t.is(known?.capacity?.route.limit, supply.maxEnis * IPS_PER_ENI);
      }),
    { numRuns: 2_000 },
  );
});

/** Three places: a prepared exclusive ENI, and two shared ones that kept addresses fill. */
const FULL = necOf({
  name: 'n1',
  maxRouteENI: 3,
  enis: [0, 1].map((serial) => ({ eniID: `eni-${serial}`, kept: keptOn(serial) })),
  status: {},
});

function keptOn(serial: number): Readonly<Record<string, string>> {
  const indexes = Array.from({ length: IPS_PER_ENI }, (_, index) => index);
  return Object.fromEntries(indexes.map((index) => [`10.1.${serial}.${index + 2}`, `default/web-${serial}-${index}`]));
}

function withStatus(fields: NodeEniConfigStatus) {
  const status = FULL['status'] as NodeEniConfigStatus;
  const prepared = { eniID: 'eni-x', mac: '20:90:6f:00:00:99', mode: 'direct-eni', state: 'Attached', deviceIndex: 3 };
  return { ...FULL, status: { ...status, eniInfos: [...(status.eniInfos ?? []), prepared], ...fields } };
}

const POD = podOf({
  name: 'late',
  isStatic: true,
  annotations: { 'tke.cloud.tencent.com/nominated-eni-subnets': 'subnet-a' },
});

function refusalOf(nec: ReturnType<typeof necOf>, more: Parameters<typeof rebuilt>[0] = {}): string | undefined {
  const index = rebuilt({ ...more, necs: [nec] });
  const demand = readPodRequest(POD);
  if (demand === undefined) throw new Error('the Pod requests an address');
  return decideFit(buildFitContext(index, demand), index.node('n1'))?.reason;
}

test('decideFit: binds no Pod to a node whose last place a prepared exclusive ENI has', (t) => {
  t.is(refusalOf(withStatus({ instanceENIs: 3 })), 'InsufficientIPorENI (need 1, free 0 of 18)');
});

test('decideFit: goes on with the limit of the policy where the places are not known, as ipamd of 0.1.0 writes none', (t) => {
  t.is(refusalOf(withStatus({})), undefined);
});

test('decideFit: an exclusive ENI on a place of the extension type leaves shared ones theirs', (t) => {
  const status = withStatus({ instanceENIs: 3, extensionENIs: 2 }).status as NodeEniConfigStatus;
  const eniInfos = (status.eniInfos ?? []).map((eni) =>
    eni.mode === 'direct-eni' ? { ...eni, attachType: 'extension' as const } : eni,
  );
  t.is(refusalOf(withStatus({ instanceENIs: 3, extensionENIs: 2, eniInfos })), undefined);
});

const EXCLUSIVE = { 'tke.cloud.tencent.com/direct-eni': '1' };

test('decideFit: counts the places of exclusive ENIs that bound Pods will get', (t) => {
  const pods = ['x', 'y'].map((name) => podOf({ name, uid: name, nodeName: 'n1', resources: EXCLUSIVE }));
  const nec = necOf({ name: 'n1', maxRouteENI: 3, enis: [{ eniID: 'eni-0', kept: keptOn(0) }] });
  const known = { ...nec, status: { ...(nec['status'] as object), instanceENIs: 3 } };
  t.is(refusalOf(known, { pods: pods.slice(1) }), undefined);
  t.is(refusalOf(known, { pods }), 'InsufficientIPorENI (need 1, free 0 of 9)');
});

test('decideFit: counts the places of shared ENIs that bound Pods will get', (t) => {
  const plain = Array.from({ length: 19 }, (_, index) =>
    podOf({ name: `p${index}`, uid: `p${index}`, nodeName: 'n1' }),
  );
  const nec = necOf({ name: 'n1', maxRouteENI: 3, spec: { maxDirectENI: 3 }, status: { instanceENIs: 3 } });
  const demand = readPodRequest(podOf({ name: 'x', resources: EXCLUSIVE }));
  if (demand === undefined) throw new Error('the Pod requests an ENI');
  const reasonWith = (count: number) => {
    const index = rebuilt({ necs: [nec], pods: plain.slice(0, count) });
    return decideFit(buildFitContext(index, demand), index.node('n1'))?.reason;
  };
  t.is(reasonWith(18), undefined);
  t.is(reasonWith(19), 'ENILimitExceed (need 1, free 0 of 0 exclusive ENIs)');
});

test('decideFit: waits for no other ENI of a subnet of which one is being created', (t) => {
  const creation = { id: 'c-1', action: 'CreateNetworkInterface', phase: 'Recorded', resourceName: 'name', ...STAMP };
  const coming = (subnetID: string) =>
    necOf({
      name: 'n1',
      maxRouteENI: 1,
      status: { instanceENIs: 1, intents: [{ ...creation, subnetID, claim: 'default/a' }] },
    });
  t.is(refusalOf(coming('subnet-a')), undefined);
  t.is(refusalOf(coming('subnet-b')), 'ENILimitExceed (1 of 1 ENIs, none of subnet-a with room)');
});

test('SchedulerIndex: says the same of a node whatever is promised on it, once it is counted again', (t) => {
  const index = rebuilt({ necs: [withStatus({ instanceENIs: 4 })] });
  const pod = readPodRequest(podOf({ name: 'x', uid: 'x', resources: { 'tke.cloud.tencent.com/direct-eni': '2' } }));
  if (pod === undefined) throw new Error('the Pod requests ENIs');
  t.is(index.node('n1')?.capacity?.route.limit, 27);
  index.reserve('n1', pod, NOW);
  t.is(index.node('n1')?.capacity?.route.limit, 18);
  index.unreserve('x');
  t.is(index.node('n1')?.capacity?.route.limit, 27);
});
