import test from 'ava';
import fc from 'fast-check';
import type { Eip } from '../../../../cloud/cloud.ts';
import { claimTag } from '../../../../crd/claim-tag.ts';
import { decideEip } from '../../../../ipamd/guests/eip/decide-eip.ts';
import { decideListedEip } from '../../../../ipamd/guests/eip/decide-listed-eip.ts';
import { eipName, eipTags } from '../../../../ipamd/guests/eip/eip-identity.ts';
import {
  buildEipPod,
  type EipPod,
  type EipSnapshot,
  type EipSpec,
  type EipStatus,
  type EipView,
} from '../../../../ipamd/guests/eip/eip-view.ts';
import { findMaxEips } from '../../../../ipamd/nodes/find-max-eips.ts';
import { assertLaw } from '../../../support/law.ts';
import { samplePod, sampleStatus } from '../records/records-world.ts';

for (const [cores, wanted] of [
  [1, 1],
  [5, 1],
  [6, 2],
  [11, 2],
  [12, 3],
  [18, 4],
  [24, 5],
  [30, 6],
  [36, 7],
  [42, 8],
  [47, 8],
  [48, 9],
  [192, 9],
] as const) {
  test(`findMaxEips: ${cores} cores, ${wanted} for Pods`, (t) => t.is(findMaxEips(cores), wanted));
}

const WISH = { 'tke.cloud.tencent.com/eip-attributes': '' };

test('buildEipPod: finds where a Pod’s address is, on a shared or an exclusive ENI, and only its own', (t) => {
  const pod = samplePod({ annotations: WISH });
  const shared = sampleStatus(['10.0.0.5']);
  t.deepEqual(buildEipPod(pod, shared).target, { nodeName: 'n1', eniId: 'eni-a', ip: '10.0.0.5' });
  const [eni] = shared.eniInfos ?? [];
  if (eni === undefined) return t.fail();
  t.is(buildEipPod(pod, { eniInfos: [{ ...eni, state: 'Detaching' }] }).target, undefined);
  t.is(buildEipPod({ ...pod, ips: ['10.0.0.9'] }, shared).target, undefined);
  const mark = (uid?: string) => ({ namespace: 'default', name: 'web-0', ...(uid === undefined ? {} : { uid }) });
  const kept = (uid?: string) => ({
    eniInfos: [{ ...eni, addresses: (eni.addresses ?? []).map((one) => ({ ...one, claim: mark(uid) })) }],
  });
  t.truthy(buildEipPod(pod, kept('uid-1')).target);
  t.is(buildEipPod(pod, kept('uid-0')).target, undefined, 'a kept address that another Pod may use');
  t.is(buildEipPod(pod, kept()).target, undefined);
  const whole = { ...eni, mode: 'direct-eni' as const, primaryIP: '10.0.0.5', addresses: [] };
  t.is(buildEipPod(pod, { eniInfos: [whole] }).target?.eniId, 'eni-a');
});

const eipOf = (eipId: string, change: Partial<Eip> = {}): Eip => ({
  eipId,
  name: '',
  publicIp: '198.51.100.1',
  status: 'UNBIND',
  tags: {},
  ...change,
});

const sightOf = (eips: readonly Eip[], change: Partial<EipSnapshot> = {}): EipSnapshot => ({
  byId: new Map(eips.map((eip) => [eip.eipId, eip])),
  made: [],
  rivals: new Map(),
  ...change,
});

test('decideListedEip: goes by the number at the end of the name, and by no other', (t) => {
  const ids = ['eip-a', 'eip-b'];
  const sight = sightOf(ids.map((eipId) => eipOf(eipId)));
  t.like(decideListedEip('default/db-1', ids, sight, undefined), { kind: 'chosen', eip: { eipId: 'eip-b' } });
  t.like(decideListedEip('default/db-2', ids, sight, undefined), { kind: 'none', isFinal: true });
  const taken = sightOf(
    ids.map((eipId) => eipOf(eipId)),
    { rivals: new Map([['eip-b', 'default/db-9']]) },
  );
  t.like(decideListedEip('default/db-1', ids, taken, undefined), {
    kind: 'none',
    message: 'eip-b belongs to the EIPClaim default/db-9',
  });
});

test('decideListedEip: a Pod without a number always begins at the same place, and ends at what is free', async (t) => {
  const ids = ['eip-a', 'eip-b', 'eip-c'];
  await assertLaw(t, () =>
    fc.property(fc.subarray(ids, { minLength: 1 }), fc.string({ minLength: 1, maxLength: 12 }), (free, name) => {
      const eips = ids.map((eipId) =>
        eipOf(eipId, free.includes(eipId) ? {} : { status: 'BIND', instanceId: 'ins-x' }),
      );
      const key = `default/api-${name}x`;
      const first = decideListedEip(key, ids, sightOf(eips), undefined);
      const again = decideListedEip(key, ids, sightOf(eips), undefined);
      return (
        first.kind === 'chosen' && free.includes(first.eip.eipId) && JSON.stringify(first) === JSON.stringify(again)
      );
    }),
  );
});

test('eipName and eipTags: fit the cloud’s bounds for every name, and tell names apart', (t) => {
  const long = `${'n'.repeat(63)}/${'p'.repeat(200)}`;
  t.true(claimTag(`${long}-0`).length <= 127);
  t.not(claimTag(`${long}-0`), claimTag(`${long}-1`));
  t.regex(eipName('11111111-2222-3333-4444-555555555555', 999_999), /^[A-Za-z0-9_-]{1,60}$/);
});

// What may come of any state at all, whoever wrote it.
const STATUSES = ['CREATING', 'BINDING', 'BIND', 'UNBINDING', 'UNBIND', 'OFFLINING', 'BIND_ENI'] as const;
const KEY = 'default/web-0';
const CLUSTER = 'cls-laws0001';
const TARGET = { nodeName: 'n1', eniId: 'eni-a', ip: '10.0.0.5' };

const anyPod = fc.option(
  fc.record({
    uid: fc.constantFrom('uid-1', 'uid-2'),
    publicIp: fc.constantFrom(undefined, '198.51.100.1'),
    isLeaving: fc.boolean(),
    request: fc.constantFrom(undefined, 'made', 'lent'),
    hasTarget: fc.boolean(),
  }),
  { nil: undefined },
);

const anyView = fc
  .record({
    pod: anyPod,
    phase: fc.constantFrom('Pending', 'Allocating', 'Binding', 'Bound', 'Retained', 'Releasing', 'Failed'),
    podUID: fc.constantFrom(undefined, 'uid-1', 'uid-2'),
    policy: fc.constantFrom('Never', 'Immediate'),
    eipID: fc.constantFrom(undefined, 'eip-a'),
    isOurs: fc.boolean(),
    allocations: fc.integer({ min: 0, max: 2 }),
    hasBinding: fc.boolean(),
    isDeleted: fc.boolean(),
    status: fc.constantFrom(...STATUSES),
    isBoundHere: fc.constantFrom('target', 'elsewhere', 'nowhere'),
    isTagged: fc.boolean(),
    isThere: fc.boolean(),
    isRival: fc.boolean(),
    isDoubted: fc.boolean(),
    hasSight: fc.boolean(),
  })
  .map((all): EipView => {
    const requestOf = (kind: string | undefined) =>
      kind === undefined
        ? undefined
        : {
            eipIds: kind === 'lent' ? ['eip-a'] : [],
            bandwidthMbps: 100,
            isp: 'BGP' as const,
            chargeType: 'TRAFFIC_POSTPAID_BY_HOUR' as const,
            isRetained: all.policy === 'Never',
          };
    const pod: EipPod | undefined = all.pod && {
      ...all.pod,
      request: requestOf(all.pod.request),
      requestFault: undefined,
      claimExpired: undefined,
      target: all.pod.hasTarget ? TARGET : undefined,
    };
    const place =
      all.isBoundHere === 'nowhere'
        ? {}
        : { eniId: 'eni-a', privateIp: all.isBoundHere === 'target' ? TARGET.ip : '10.0.0.66' };
    const tags = all.isTagged ? eipTags(CLUSTER, KEY) : {};
    const eip = eipOf('eip-a', { status: all.status, tags, ...(all.status === 'UNBIND' ? {} : place) });
    const spec: EipSpec = {
      deletePolicy: all.policy as 'Never' | 'Immediate',
      ...(all.podUID === undefined ? {} : { podUID: all.podUID }),
    };
    const status: EipStatus = {
      phase: all.phase as NonNullable<EipStatus['phase']>,
      allocations: all.allocations,
      ...(all.eipID === undefined ? {} : { eipID: all.eipID, isOurs: all.isOurs, publicIP: '198.51.100.1' }),
      ...(all.hasBinding ? { eniID: 'eni-a', privateIP: TARGET.ip, nodeName: 'n1' } : {}),
    };
    const metadata = {
      name: 'web-0',
      namespace: 'default',
      uid: 'c-1',
      ...(all.isDeleted ? { deletionTimestamp: 'x' } : {}),
    };
    const made = all.isThere && all.isTagged ? [eip] : [];
    return {
      key: KEY,
      clusterId: CLUSTER,
      pod,
      claim: { metadata, spec, status, object: {} },
      snapshot: all.hasSight
        ? sightOf(all.isThere ? [eip] : [], { made, rivals: new Map(all.isRival ? [['eip-a', 'default/x']] : []) })
        : undefined,
      needsComparison: all.isDoubted,
      capacity: { limit: undefined, used: 0 },
      allocationRefusal: undefined,
      nowMs: 0,
      retainedForMs: 0,
      claimExpiredMs: 0,
    };
  });

test('decideEip: in no state at all releases, unbinds or takes what is not its own', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(anyView, (view) => {
        const step = decideEip(view);
        if (step.kind !== 'begin') return true;
        const { call } = step;
        // Nothing is changed in the cloud that was not looked at first.
        if (view.snapshot === undefined) return false;
        if (call.action === 'AllocateAddresses') {
          return (
            view.claim?.status?.eipID === undefined &&
            !view.snapshot.made.some((eip) => eip.status !== 'OFFLINING' && !view.snapshot?.rivals.has(eip.eipId))
          );
        }
        const eip = view.snapshot.byId.get(call.eipId);
        const isTagged = view.snapshot.made.some(({ eipId }) => eipId === call.eipId);
        const { privateIP, eniID } = view.claim?.status ?? {};
        switch (call.action) {
          case 'AssociateAddress':
            return eip?.status === 'UNBIND' && view.pod?.target?.ip === call.ip;
          case 'DisassociateAddress':
            return (
              isTagged && !view.snapshot.rivals.has(call.eipId) && eip?.privateIp === privateIP && eip?.eniId === eniID
            );
          default:
            return isTagged && eip?.status === 'UNBIND' && view.claim?.status?.phase === 'Releasing';
        }
      }),
    { numRuns: 5_000 },
  );
});
