import test from 'ava';
import fc from 'fast-check';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { decideAllocatable, isWorthReporting, withAllocatable } from '../../../ipamd/decide/decide-allocatable.ts';
import type { NodeView } from '../../../ipamd/decide/node-view.ts';
import { assertLaw } from '../../support/law.ts';

/** Three ENIs of nine addresses. */
const INSTANCE = {
  instanceId: 'ins-1',
  instanceType: 'S5',
  zone: 'z',
  vpcId: 'vpc-1',
  isRunning: true,
  secondaryEnis: 3,
  secondaryIpsPerEni: 9,
};
const QUOTA = 27;

function subnet(subnetId: string, freeIps: number, isBlocked = false) {
  return { subnetId, cidr: '10.0.0.0/16', freeIps, isBlocked };
}

/** An ENI with so many addresses, in subnet-a. */
function eni(serial: number, count: number, more: Partial<NodeEniInfo> = {}): NodeEniInfo {
  const addresses = Array.from({ length: count }, (_, index) => ({
    ip: `10.0.${serial}.${index + 2}`,
    assignmentID: `a-${serial}-${index}`,
    state: 'Assigned' as const,
  }));
  return {
    eniID: `eni-${serial}`,
    mac: `20:90:6f:00:00:0${serial}`,
    subnetID: 'subnet-a',
    state: 'Attached',
    addresses,
    ...more,
  };
}

function view(more: Partial<NodeView> = {}): NodeView {
  return {
    nodeName: 'n1',
    uid: 'uid-1',
    spec: { desiredRouteENIIP: 5, maxRouteENI: 3, maxIPPerENI: 9 },
    status: {},
    leaving: 'no',
    instance: INSTANCE,
    maxRouteENI: 3,
    maxIPPerENI: 9,
    floor: 0,
    initialDemand: 5,
    subnets: [subnet('subnet-a', 4_000)],
    securityGroups: undefined,
    blocked: new Set(),
    stuck: new Set(),
    ...more,
  };
}

function most(enis: readonly NodeEniInfo[], more: Partial<NodeView> = {}, status: NodeEniConfigStatus = {}) {
  return decideAllocatable(view(more), { ...status, eniInfos: enis })?.max;
}

const EXCLUSIVE = eni(3, 0, { mode: 'direct-eni', deviceIndex: 3 });
const NONE_LEFT = [subnet('subnet-a', 0)];

/** Claims whose Pods are on the node and that have no address here yet. */
function claimsOf(count: number): NonNullable<NodeView['claims']> {
  const keys = Array.from({ length: count }, (_, index) => `default/web-${index}`);
  return new Map(keys.map((key) => [key, { key, mode: 'route-eni', goal: 'here', podUid: `uid-${key}` }]));
}

const CASES: readonly (readonly [string, number, Parameters<typeof most>])[] = [
  ['all of the quota while subnets have enough', QUOTA, [[eni(1, 5)]]],
  ['what it has when its subnet is empty', 5, [[eni(1, 5)], { subnets: [subnet('subnet-a', 0)] }]],
  ['what it has when its subnet was found full', 5, [[eni(1, 5)], { subnets: [subnet('subnet-a', 90, true)] }]],
  ['the last address on an ENI that is there', 6, [[eni(1, 5)], { subnets: [subnet('subnet-a', 1)] }]],
  ['nothing for an address that no ENI has room for', 9, [[eni(1, 9)], { subnets: [subnet('subnet-a', 1)] }]],
  ['an address less for a new ENI', 11, [[eni(1, 9)], { subnets: [subnet('subnet-a', 3)] }]],
  ['an address less for each of two', 9 + 9 + 2, [[eni(1, 9)], { subnets: [subnet('subnet-a', 13)] }]],
  [
    'of two subnets the fuller one last',
    9 + 5 + 4,
    [[eni(1, 9)], { subnets: [subnet('subnet-a', 5), subnet('subnet-b', 6)] }],
  ],
  [
    "room on an ENI of a subnet that is not the node's any more",
    9,
    [[eni(1, 5, { subnetID: 'subnet-old' })], { subnets: [] }],
  ],
  [
    'no such room once that subnet was found full',
    5,
    [[eni(1, 5, { subnetID: 'subnet-old' })], { subnets: [], blocked: new Set(['subnet/subnet-old']) }],
  ],
  ['no new ENI when the VPC takes none', 9, [[eni(1, 5)], { blocked: new Set(['vpc-enis']) }]],
  ['no new ENI when the instance takes none', 9, [[eni(1, 5)], { blocked: new Set(['instance-enis']) }]],
  [
    'no new ENI when the VPC took none, again and again until a moment ago',
    9,
    [[eni(1, 5)], { doubtful: new Set(['vpc-enis']) }],
  ],
  ['no more on an ENI that takes none', 5 + 18, [[eni(1, 5)], { blocked: new Set(['eni-ips/eni-1']) }]],
  [
    'what Pods have on an ENI that drains, and the rest',
    2 + 18,
    [[eni(1, 9, { draining: true })], { inUse: new Set(['10.0.1.2', '10.0.1.3']) }],
  ],
  [
    'what Pods have when the node leaves',
    1,
    [[eni(1, 9, { draining: true })], { leaving: 'drain', inUse: new Set(['10.0.1.2']) }],
  ],
  [
    'nothing of an ENI that is never attached',
    0,
    [[eni(1, 9, { state: 'Attaching' })], { subnets: [subnet('subnet-a', 0)], stuck: new Set(['eni-1']) }],
  ],
  [
    'no address that is given back',
    4,
    [
      [
        eni(1, 5, {
          addresses: (eni(1, 5).addresses ?? []).map((one, index) => ({
            ...one,
            state: index === 0 ? 'Releasing' : 'Assigned',
          })),
        }),
      ],
      { subnets: [subnet('subnet-a', 0)] },
    ],
  ],
  [
    'a claim once, where its place is free',
    9,
    [[eni(1, 5)], { claims: claimsOf(1), blocked: new Set(['instance-enis']) }],
  ],
  ['a claim whose address needs none of the subnet', 6, [[eni(1, 5)], { claims: claimsOf(1), subnets: NONE_LEFT }]],
  ['claims for which new ENIs will be made', 10, [[], { claims: claimsOf(10), subnets: [] }]],
  ['no claims for which none can be made', 0, [[], { claims: claimsOf(10), blocked: new Set(['vpc-enis']) }]],
];
for (const [title, count, given] of CASES) {
  test(`decideAllocatable: counts ${title}`, (t) => {
    t.is(most(...given), count);
  });
}

test('decideAllocatable: says nothing while the instance is not known', (t) => {
  t.is(most([eni(1, 5)], { instance: undefined }), undefined);
});

test('decideAllocatable: counts what is asked for and not described yet', (t) => {
  const intent = {
    id: 'i-1',
    action: 'AssignPrivateIpAddresses' as const,
    phase: 'Recorded' as const,
    eniID: 'eni-1',
    ipCount: 3,
    leaderEpoch: 1,
    requestTimeoutSeconds: 30,
    recordedAt: '2026-01-01T00:00:00Z',
  };
  t.is(most([eni(1, 5)], { subnets: [subnet('subnet-a', 0)] }, { intents: [intent] }), 8);
});

test('decideAllocatable: counts the same before an ENI is asked for, while it is made, and once it is there', (t) => {
  const creation = {
    id: 'i-1',
    action: 'CreateNetworkInterface' as const,
    phase: 'Recorded' as const,
    subnetID: 'subnet-a',
    ipCount: 5,
    leaderEpoch: 1,
    requestTimeoutSeconds: 30,
    recordedAt: '2026-01-01T00:00:00Z',
  };
  const intents = [creation];
  const known = [{ ...creation, eniID: 'eni-1' }];
  for (const free of [4_000, 25, 8]) {
    const before = { subnets: [subnet('subnet-a', free)] };
    // The ENI's own address and those for Pods, of which the subnet's count tells at once.
    const after = { subnets: [subnet('subnet-a', free - 6)] };
    const steps = {
      'nothing is asked for': most([], before),
      'it is asked for': most([], after, { intents }),
      'its id is known': most([], after, { intents: known }),
      'it is in the status, without addresses': most([eni(1, 0, { state: 'Attaching' })], after, { intents: known }),
      'it is being attached': most([eni(1, 5, { state: 'Attaching' })], after),
      'it serves': most([eni(1, 5)], after),
    };
    const first = steps['nothing is asked for'];
    t.deepEqual(steps, Object.fromEntries(Object.keys(steps).map((step) => [step, first])), `${free} free`);
  }
});

test('decideAllocatable: counts nothing on an ENI that never comes', (t) => {
  const intent = {
    id: 'i-1',
    action: 'CreateNetworkInterface' as const,
    phase: 'Recorded' as const,
    subnetID: 'subnet-a',
    ipCount: 5,
    leaderEpoch: 1,
    requestTimeoutSeconds: 30,
    recordedAt: '2026-01-01T00:00:00Z',
  };
  t.is(most([], { stuck: new Set(['i-1']) }, { intents: [intent] }), 18);
});

const VIEW = fc
  .record({
    free: fc.array(fc.nat(40), { maxLength: 3 }),
    counts: fc.array(fc.nat(9), { maxLength: 3 }),
    maxRouteENI: fc.integer({ min: 0, max: 4 }),
    blocked: fc.subarray(['vpc-enis', 'subnet/subnet-0', 'eni-ips/eni-0']),
  })
  .map(({ free, counts, maxRouteENI, blocked }) => ({
    enis: counts.map((count, index) => eni(index, count, { subnetID: `subnet-${index % 2}` })),
    more: {
      maxRouteENI,
      subnets: free.map((count, index) => subnet(`subnet-${index}`, count)),
      blocked: new Set(blocked),
    },
  }));

test('decideAllocatable: is never more than the limit, nor more than has and free together, and grows with what is free', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(VIEW, fc.nat(2), ({ enis, more }, which) => {
        const now = decideAllocatable(view(more), { eniInfos: enis });
        if (now === undefined) throw new Error('the instance is known');
        t.true(now.max <= now.limit && now.max >= Math.min(now.has, now.limit));
        const isAllKnown = enis.every((one) => more.subnets.some(({ subnetId }) => subnetId === one.subnetID));
        const free = more.subnets.reduce((sum, { freeIps }) => sum + freeIps, 0);
        if (isAllKnown) t.true(now.max <= now.has + free);
        const richer = more.subnets.map((one, index) => (index === which ? { ...one, freeIps: one.freeIps + 1 } : one));
        const later = decideAllocatable(view({ ...more, subnets: richer }), { eniInfos: enis });
        t.true((later?.max ?? -1) >= now.max);
        const status = withAllocatable({ eniInfos: enis }, now);
        t.is(status.allocatableRouteENIIPs ?? now.limit, now.max);
        t.is(withAllocatable(status, now), status);
        t.false(isWorthReporting(now, status.allocatableRouteENIIPs));
      }),
    { numRuns: 2_000 },
  );
});

test('decideAllocatable: counts no more than the ENIs of the node have places, whatever claims wait', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(VIEW, fc.nat(40), fc.nat(2), fc.boolean(), ({ enis, more }, waiting, exclusive, isRefused) => {
        const direct = Array.from({ length: exclusive }, (_, index) => ({ ...EXCLUSIVE, eniID: `eni-x${index}` }));
        const blocked = new Set([...more.blocked, ...(isRefused ? ['instance-enis'] : [])]);
        const given = view({ ...more, blocked, claims: claimsOf(waiting) });
        const now = decideAllocatable(given, { eniInfos: [...enis, ...direct] });
        const places = Math.max(0, Math.min(more.maxRouteENI, 3 - exclusive));
        // An ENI above a limit that was lowered stays, and takes claims.
        t.true((now?.max ?? 0) <= Math.max(enis.length, places) * 9, `${now?.max} of ${places} ENIs`);
        if (isRefused) t.true((now?.max ?? 0) <= enis.length * 9);
      }),
    { numRuns: 1_000 },
  );
});

const WORTH: readonly (readonly [string, boolean, { most: number; told: number | undefined }])[] = [
  ['nothing more to give, where there was', true, { most: 10, told: 12 }],
  ['nothing more to give, where there was no limit', true, { most: 10, told: undefined }],
  ['something to give, where there was nothing', true, { most: 11, told: 10 }],
  ['a little less', false, { most: 21, told: 27 }],
  ['a little more', false, { most: 27, told: 21 }],
  ['far less', true, { most: 15, told: undefined }],
  ['the same', false, { most: 12, told: 12 }],
  ['no limit, as before', false, { most: 27, told: undefined }],
];
for (const [title, isWorth, { most: count, told }] of WORTH) {
  test(`isWorthReporting: ${isWorth ? 'takes' : 'takes no'} write for ${title}`, (t) => {
    t.is(isWorthReporting({ max: count, has: 10, limit: QUOTA, isRefused: false }, told), isWorth);
  });
}
