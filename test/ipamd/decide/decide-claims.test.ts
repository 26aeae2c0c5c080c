import test from 'ava';
import type {
  NodeEniAddress,
  NodeEniConfigSpec,
  NodeEniConfigStatus,
  NodeEniInfo,
} from '../../../crd/node-eni-config-fields.ts';
import type { ClaimRequest } from '../../../ipamd/decide/claim-request.ts';
import { decideNode } from '../../../ipamd/decide/decide-node.ts';
import type { Intent, Leader } from '../../../ipamd/decide/decision.ts';
import { buildDecisionContext } from '../../../ipamd/decide/decision-context.ts';
import { evaluateIntent } from '../../../ipamd/decide/evaluate-intent.ts';
import { finishIntent } from '../../../ipamd/decide/finish-intent.ts';
import type { NodeView } from '../../../ipamd/decide/node-view.ts';
import { planClaims } from '../../../ipamd/decide/plan-claims.ts';
import { claimWaitsOf } from '../../../ipamd/decide/plan-wants.ts';
import { rebuildStatus } from '../../../ipamd/decide/rebuild-status.ts';
import { revertForeignMarks } from '../../../ipamd/decide/revert-foreign-marks.ts';
import { NecWorld } from '../support/nec-world.ts';

const LEADER: Leader = { epoch: 1, clusterId: 'cls-laws', requestTimeoutSeconds: 60 };
const KEY = 'ns/web-0';
const IP = '10.0.1.50';
const MARK = { namespace: 'ns', name: 'web-0' };

function ids() {
  let count = 0;
  return { next: () => (0xa000 + count++).toString(16).padStart(16, '0'), now: () => '2026-01-01T00:00:00Z' };
}

function address(ip: string, more: Partial<NodeEniAddress> = {}): NodeEniAddress {
  return { ip, assignmentID: `of-${ip}`, state: 'Assigned', ...more };
}

function eni(addresses: readonly NodeEniAddress[], more: Partial<NodeEniInfo> = {}): NodeEniInfo {
  return {
    eniID: 'eni-1',
    mac: '20:90:6f:00:00:01',
    primaryIP: '10.0.1.2',
    gateway: '10.0.1.1',
    subnetID: 'subnet-a',
    subnetCIDR: '10.0.1.0/24',
    state: 'Attached',
    deviceIndex: 1,
    assignmentID: 'bound-1',
    securityGroups: [],
    addresses,
    ...more,
  };
}

function viewOf(
  enis: readonly NodeEniInfo[],
  wishes: readonly Partial<ClaimRequest>[],
  more: Partial<NodeView> = {},
): NodeView {
  const status: NodeEniConfigStatus = { supplyEpoch: 7, eniInfos: enis, intents: [], instanceID: 'ins-1' };
  const claims = wishes.map((wish): ClaimRequest => ({ key: KEY, mode: 'route-eni', goal: 'here', ...wish }));
  return { ...new NecWorld().view(), status, claims: new Map(claims.map((wish) => [wish.key, wish])), ...more };
}

/** Why claims wait on a node as it is. */
function waitsOf(view: NodeView) {
  return claimWaitsOf(view, planClaims(buildDecisionContext(view, view.status)));
}

/** Says in words what is decided: the call, and how the kept address stands afterwards. */
function decided(view: NodeView): string {
  const decision = decideNode(view, LEADER, ids());
  const status = 'status' in decision ? decision.status : view.status;
  const kept = (status.eniInfos ?? [])
    .flatMap((one) => one.addresses ?? [])
    .filter(({ ip, claim }) => ip === IP || claim !== undefined)
    .map(
      ({ ip, state, claim }) => `${ip} ${state} ${claim === undefined ? 'unmarked' : `for ${claim.uid ?? 'nobody'}`}`,
    );
  const call = decision.kind === 'begin' ? callOf(decision.intent) : 'no call';
  return [call, ...kept].join('; ');
}

function callOf({ action, eniID, targetENIID, subnetID, ips, ipCount, claim }: Intent): string {
  const parts = [action, eniID, targetENIID, subnetID, ips?.join(), ipCount, claim];
  return parts.filter((part) => part !== undefined).join(' ');
}

function offering(...addresses: readonly NodeEniAddress[]): { readonly spec: NodeEniConfigSpec } {
  return { spec: { releasableIPs: addresses.map(({ ip, assignmentID }) => ({ ip, assignmentID })) } };
}

const HERE: Partial<ClaimRequest> = { goal: 'here', podUid: 'uid-1', ip: IP };
const OTHERS = { nodeName: 'n2', eniId: 'eni-9', isAttached: true, isReleased: true };
const IDLE = address(IP, { claim: MARK });
const SERVES = address(IP, { claim: { ...MARK, uid: 'uid-1' } });
const LEFT = address(IP, { claim: MARK, state: 'Releasing' });
/** Keeps the ENI. */
const USED = address('10.0.1.9');
const FULL = ['10.0.1.10', '10.0.1.11', '10.0.1.12'].map((ip) => address(ip));
const EXACT = 'AssignPrivateIpAddresses eni-1 10.0.1.50 ns/web-0';

/** For Pods that name its subnet alone. */
const RESERVED = { reservedSubnets: new Set(['subnet-r']) };
const RESERVED_ENI = eni([address('10.0.9.9', { claim: { namespace: 'ns', name: 'other', uid: 'uid-9' } })], {
  subnetID: 'subnet-r',
  subnetCIDR: '10.0.9.0/24',
  primaryIP: '10.0.9.2',
  gateway: '10.0.9.1',
});
const NAMED_BY_ANOTHER = { subnetId: 'subnet-r', cidr: '10.0.9.0/24', freeIps: 5_000, isBlocked: false };

const ROWS: Readonly<Record<string, readonly [NodeView, string]>> = {
  'gives the very address on an ENI of its subnet': [viewOf([eni([])], [HERE]), EXACT],
  'gives any where any will do': [
    viewOf([eni([])], [{ goal: 'here', podUid: 'uid-1' }]),
    'AssignPrivateIpAddresses eni-1 1 ns/web-0',
  ],
  'makes an ENI in the subnet of the address, without addresses of its own': [
    viewOf([], [{ ...HERE, ip: '10.0.2.50' }]),
    'CreateNetworkInterface subnet-b ns/web-0',
  ],
  'makes an ENI in a subnet that the Pod accepts, with an address for it': [
    viewOf([], [{ goal: 'here', podUid: 'uid-1', subnetIds: ['subnet-b'] }]),
    'CreateNetworkInterface subnet-b 1 ns/web-0',
  ],
  'takes a place in a subnet that has to be named for the Pod that names it, and for a kept address of it': [
    viewOf([RESERVED_ENI], [{ goal: 'here', podUid: 'uid-1', subnetIds: ['subnet-r'] }], RESERVED),
    'AssignPrivateIpAddresses eni-1 1 ns/web-0',
  ],
  'makes no ENI in a subnet that another Pod names': [
    viewOf([], [{ goal: 'here', podUid: 'uid-1' }], { claimSubnets: [NAMED_BY_ANOTHER] }),
    'CreateNetworkInterface subnet-a 1 ns/web-0',
  ],
  'takes no place for the pool in a subnet that has to be named': [
    viewOf([RESERVED_ENI], [], { ...RESERVED, spec: { desiredRouteENIIP: 2 } }),
    'CreateNetworkInterface subnet-a 2',
  ],
  'waits for what the pool gives back where it would do': [
    viewOf([eni(FULL)], [HERE], { spec: { desiredRouteENIIP: 2, ...offering(...FULL).spec } }),
    'UnassignPrivateIpAddresses eni-1 10.0.1.10',
  ],
  'writes the uid of the Pod that is here': [viewOf([eni([IDLE])], [HERE]), 'no call; 10.0.1.50 Assigned for uid-1'],
  'marks an address of the pool that is the claim': [
    viewOf([eni([address(IP)])], [HERE]),
    'no call; 10.0.1.50 Assigned for uid-1',
  ],
  'marks none that a Pod without a claim has': [
    viewOf([eni([address(IP)])], [HERE], { inUse: new Set([IP]) }),
    'no call; 10.0.1.50 Assigned unmarked',
  ],
  'lets go of nothing that the agent has not offered': [
    viewOf([eni([SERVES])], [{ goal: 'elsewhere', ip: IP, willMigrate: true }]),
    'no call; 10.0.1.50 Assigned for nobody',
  ],
  'lets go of what another node takes over, without a call': [
    viewOf([eni([IDLE])], [{ goal: 'elsewhere', ip: IP, willMigrate: true }], offering(IDLE)),
    'no call; 10.0.1.50 Releasing for nobody',
  ],
  'takes off what was let go of and nobody fetches any more': [
    viewOf([eni([USED, LEFT])], [{ goal: 'elsewhere', ip: IP, willMigrate: false }]),
    'UnassignPrivateIpAddresses eni-1 10.0.1.50; 10.0.1.50 Releasing for nobody',
  ],
  'takes off what a claim that ends had': [
    viewOf([eni([USED, IDLE])], [{ goal: 'free', ip: IP }], offering(IDLE)),
    'UnassignPrivateIpAddresses eni-1 10.0.1.50; 10.0.1.50 Releasing for nobody',
  ],
  'passes over an agent that does not answer': [
    viewOf([eni([USED, SERVES])], [{ goal: 'free', ip: IP, mayTakeOver: true }]),
    'UnassignPrivateIpAddresses eni-1 10.0.1.50; 10.0.1.50 Releasing for nobody',
  ],
  'passes over it for another node, too': [
    viewOf([eni([SERVES])], [{ goal: 'elsewhere', ip: IP, willMigrate: true, mayTakeOver: true }]),
    'no call; 10.0.1.50 Releasing for nobody',
  ],
  'does nothing while another node has a call for it': [
    viewOf([eni([LEFT])], [{ goal: 'free', ip: IP }], { claimCallsElsewhere: new Set([KEY]) }),
    'no call; 10.0.1.50 Releasing for nobody',
  ],
  'serves nothing that was let go of before the cloud gave it again': [
    viewOf([eni([USED, LEFT])], [HERE]),
    'UnassignPrivateIpAddresses eni-1 10.0.1.50; 10.0.1.50 Releasing for nobody',
  ],
  'moves what another node let go of': [
    viewOf([eni([])], [{ ...HERE, source: OTHERS }]),
    'MigratePrivateIpAddress eni-9 eni-1 10.0.1.50 ns/web-0',
  ],
  'waits for the taking off where the other ENI is not attached': [
    viewOf([eni([])], [{ ...HERE, source: { ...OTHERS, isAttached: false } }]),
    'no call',
  ],
  'forgets what the other node has': [
    viewOf([eni([USED, LEFT])], [{ goal: 'elsewhere', ip: IP, willMigrate: true }], {
      movedTo: new Map([[IP, 'eni-9']]),
    }),
    'no call',
  ],
  'asks for another while the cloud refuses one': [
    viewOf([eni([])], [HERE, { ...HERE, key: 'ns/web-1', ip: '10.0.1.51' }], { blocked: new Set([`claim/${KEY}`]) }),
    'AssignPrivateIpAddresses eni-1 10.0.1.51 ns/web-1',
  ],
  'keeps an ENI that has nothing but a kept address': [
    viewOf([eni([IDLE])], [{ goal: 'keep', ip: IP }], { spec: { desiredRouteENIIP: 0, ...offering(IDLE).spec } }),
    'no call; 10.0.1.50 Assigned for nobody',
  ],
  'gives it back with the ENI when the node leaves': [
    viewOf([eni([IDLE])], [{ goal: 'keep', ip: IP }], { leaving: 'drain', ...offering(IDLE) }),
    'DetachNetworkInterface eni-1; 10.0.1.50 Releasing for nobody',
  ],
};

for (const goal of ['here', 'elsewhere', 'free'] as const) {
  test(`decideNode: looks again soon while another node has a call for a claim whose request is ${goal}`, (t) => {
    const others = { claimCallsElsewhere: new Set([KEY]), ...offering(IDLE) };
    const view = viewOf([eni([USED, IDLE])], [{ goal, ip: IP }], others);
    const first = decideNode(view, LEADER, ids());
    const decision = first.kind === 'write' ? decideNode({ ...view, status: first.status }, LEADER, ids()) : first;
    t.is(decision.kind, 'blocked');
    t.true(decision.kind === 'blocked' && decision.afterMs <= 2_000);
  });
}

for (const [name, [view, expected]] of Object.entries(ROWS)) {
  test(`decideNode: ${name}`, (t) => {
    const [head, ...rest] = decided(view).split('; ');
    const [wantedHead, ...wantedRest] = expected.split('; ');
    t.is(head, wantedHead);
    if (wantedRest.length > 0) t.true(rest.includes(wantedRest[0] ?? ''), rest.join('; '));
    if (expected === 'no call' && view.movedTo !== undefined) t.deepEqual(rest, []);
  });
}

test('decideNode: counts the places of kept addresses, those that are to come included, and leaves the pool the rest', (t) => {
  const wishes = [HERE, { ...HERE, key: 'ns/web-1', ip: '10.0.1.51' }];
  const view = viewOf([eni([SERVES])], wishes, { spec: { desiredRouteENIIP: 9 } });
  const decision = decideNode(view, LEADER, ids());
  t.is(decision.kind === 'begin' ? decision.status.staticRouteENIIPs : undefined, 2);
  const later = viewOf([eni([SERVES, address('10.0.1.51', { claim: { namespace: 'ns', name: 'web-1' } })])], wishes, {
    spec: { desiredRouteENIIP: 9 },
  });
  const growth = decideNode(later, LEADER, ids());
  t.is(growth.kind === 'begin' ? growth.intent.ipCount : undefined, 1, 'one place is left on the ENI');
});

test('decideNode: gives a new ENI back that took a kept address as its own, after another is there in its place', (t) => {
  const { assignmentID: _never, deviceIndex: _none, ...bare } = eni([], { primaryIP: IP, state: 'Attaching' });
  const more = { reservedIps: new Map([[IP, KEY]]) };
  const first = viewOf([bare], [HERE], more);
  t.is(decided(first), 'CreateNetworkInterface subnet-a ns/web-0');
  const begun = decideNode(first, LEADER, ids());
  const status = 'status' in begun ? begun.status : first.status;
  t.is(status.eniInfos?.[0]?.draining, true);
  const second = decideNode({ ...first, status }, LEADER, ids());
  t.true(second.kind === 'blocked' || second.kind === 'write', second.kind);
  const other = eni([], { eniID: 'eni-2', mac: '20:90:6f:00:00:02', primaryIP: '10.0.1.3' });
  const third = viewOf([bare, other], [HERE], more);
  t.is(decided(third), 'DeleteNetworkInterface eni-1');
  t.is(
    waitsOf({ ...third, status: { ...third.status, eniInfos: [{ ...bare, draining: true }, other] } }).get(KEY)
      ?.message,
    '10.0.1.50 is the primary address of ENI eni-1 of this node, which is being released for it',
  );
  t.is(decided(viewOf([other], [HERE], more)), 'AssignPrivateIpAddresses eni-2 10.0.1.50 ns/web-0');
});

test('decideNode: leaves an ENI that serves alone when a Pod asks for its own address', (t) => {
  const serving = eni([USED], { primaryIP: IP });
  const view = viewOf([serving], [HERE], { reservedIps: new Map([[IP, KEY]]) });
  t.is(decided(view), 'no call');
  t.is(
    waitsOf(view).get(KEY)?.message,
    '10.0.1.50 is the primary address of ENI eni-1 of this node, which serves Pods',
  );
});

test('decideNode: gives an ENI of the pool back that took a kept address, on a node with one place for ENIs', (t) => {
  const { assignmentID: _never, deviceIndex: _none, ...bare } = eni([USED], { primaryIP: IP, state: 'Attaching' });
  const spec = { desiredRouteENIIP: 1 };
  const view = viewOf([bare], [], { reservedIps: new Map([[IP, KEY]]), spec, maxRouteENI: 1 });
  t.is(decided(view), 'CreateNetworkInterface subnet-a 1');
});

test('claimWaitsOf: says of each claim what it waits for', (t) => {
  const wishes = [
    { ...HERE, source: { ...OTHERS, isReleased: false } },
    { ...HERE, key: 'ns/web-1', ip: '192.168.0.1' },
  ];
  t.deepEqual(Object.fromEntries(waitsOf(viewOf([eni([])], wishes))), {
    'ns/web-0': { message: '10.0.1.50 is in use on node n2', isNodeFull: false },
    'ns/web-1': { message: 'no subnet of this node has the address: 192.168.0.1', isNodeFull: false },
  });
});

test('claimWaitsOf: calls a node full when Pods and claims have every place, and no more ENIs are allowed', (t) => {
  const held = (name: string, ip: string) => address(ip, { claim: { namespace: 'ns', name, uid: `uid-${name}` } });
  const ips = ['10.0.1.11', '10.0.1.12', '10.0.1.13'];
  const marked = ips.map((ip, index) => held(`held-${index}`, ip));
  const pooled = ips.map((ip) => address(ip));
  const holders = ips.map((ip, index) => ({ ...HERE, key: `ns/held-${index}`, ip, podUid: `uid-held-${index}` }));
  const late: Partial<ClaimRequest> = { key: KEY, podUid: 'uid-web-0' };
  const exclusive = eni([], { eniID: 'eni-x', mac: '20:90:6f:00:00:03', mode: 'direct-eni', deviceIndex: 2 });
  const waits = (addresses: readonly NodeEniAddress[], inUse: readonly string[], other?: Partial<NodeEniInfo>) => {
    const enis = [eni(addresses), ...(other === undefined ? [] : [{ ...exclusive, ...other }])];
    const wishes = addresses === marked ? [...holders, late] : [late];
    return waitsOf(viewOf(enis, wishes, { inUse: new Set(inUse) })).get(KEY);
  };
  t.deepEqual(waits(marked, ips, {}), {
    isNodeFull: true,
    message:
      'none of the 1 suitable ENIs of this node has a free address slot, and the node, which has 1 shared ENIs, may have no more',
  });
  t.true(waits(pooled, ips, {})?.isNodeFull, 'Pods of the pool');
  t.false(waits(pooled, ips.slice(1), {})?.isNodeFull, 'the pool has one that no Pod uses');
  t.not(waits(marked, ips)?.isNodeFull, true, 'another ENI is allowed');
  t.not(waits(marked, ips, { state: 'Detaching' })?.isNodeFull, true, 'an ENI is leaving its place');
});

const MOVE: Intent = {
  id: 'move-1',
  action: 'MigratePrivateIpAddress',
  phase: 'Recorded',
  leaderEpoch: 1,
  requestTimeoutSeconds: 60,
  recordedAt: '2026-01-01T00:00:00Z',
  eniID: 'eni-9',
  targetENIID: 'eni-1',
  ips: [IP],
  claim: KEY,
};

test('finishIntent: has what was moved on the ENI that it was moved to, marked and for nobody yet', (t) => {
  const { status } = viewOf([eni([])], []);
  const done = { kind: 'done', result: { action: MOVE.action, ips: [IP] } } as const;
  const next = finishIntent({ ...status, intents: [MOVE] }, MOVE, done as never, ids());
  t.deepEqual(next.intents, []);
  t.like(next.eniInfos?.[0]?.addresses, [{ ip: IP, state: 'Assigned', claim: MARK }]);
  t.is(next.supplyEpoch, 8);
});

test('finishIntent: marks for its claim what came by count, though another asked', (t) => {
  const assign: Intent = { ...MOVE, action: 'AssignPrivateIpAddresses', eniID: 'eni-1', ipCount: 1, claim: 'ns/other' };
  const { status } = viewOf([eni([])], []);
  const done = { kind: 'done', result: { action: 'AssignPrivateIpAddresses', ips: [IP] } } as const;
  const next = finishIntent({ ...status, intents: [assign] }, assign, done, ids(), new Map([[IP, KEY]]));
  t.deepEqual(next.eniInfos?.[0]?.addresses?.[0]?.claim, MARK);
});

test('evaluateIntent: tells by both ENIs whether an address was moved, and never sends the move again', (t) => {
  const world = new NecWorld();
  const { status } = viewOf([eni([])], []);
  const head = { mac: '', name: '', primaryIP: '', subnetID: '', subnetCIDR: '', gateway: '', securityGroups: [] };
  const seen = (eniID: string, ips: readonly string[], pendingIps: readonly string[]) =>
    ({ ...head, eniID, state: 'AVAILABLE', ips, pendingIps }) as const;
  const sight = (source: readonly string[], target: readonly string[], pending: readonly string[] = []) => ({
    ...world.sight(),
    enis: new Map([
      ['eni-9', seen('eni-9', source, pending)],
      ['eni-1', seen('eni-1', target, [])],
    ]),
  });
  const kindOf = (judged: ReturnType<typeof evaluateIntent>) => (judged === 'repeat' ? judged : judged.kind);
  t.is(kindOf(evaluateIntent(MOVE, sight([], [IP]), status)), 'done');
  t.is(kindOf(evaluateIntent(MOVE, sight([IP], []), status)), 'refused');
  t.is(kindOf(evaluateIntent(MOVE, sight([], [], [IP]), status)), 'unclear');
  t.is(kindOf(evaluateIntent(MOVE, { ...sight([IP], []), enis: new Map() }, status)), 'refused');
});

test('rebuildStatus: marks what it finds of a claim, and after a restore lets nobody use what is marked', (t) => {
  const { status } = viewOf([eni([SERVES])], []);
  const cloud = new Map([
    [
      'eni-1',
      {
        eniID: 'eni-1',
        mac: '20:90:6f:00:00:01',
        name: '',
        primaryIP: '10.0.1.2',
        subnetID: 'subnet-a',
        subnetCIDR: '10.0.1.0/24',
        gateway: '10.0.1.1',
        state: 'AVAILABLE',
        instanceID: 'ins-1',
        deviceIndex: 1,
        securityGroups: [],
        ips: [IP, '10.0.1.51'],
        pendingIps: [],
      } as const,
    ],
  ]);
  const reserved = new Map([['10.0.1.51', 'ns/web-1']]);
  const sight = { enis: cloud, isComplete: true };
  const mended = rebuildStatus(status, {}, sight, ids(), undefined, reserved);
  t.deepEqual(
    mended.eniInfos?.[0]?.addresses?.map(({ claim }) => claim),
    [SERVES.claim, { namespace: 'ns', name: 'web-1' }],
  );
  const restored = rebuildStatus(status, { observedSupplyEpoch: 9 }, sight, ids(), undefined, reserved);
  t.deepEqual(
    restored.eniInfos?.[0]?.addresses?.map(({ claim }) => claim),
    [MARK, { namespace: 'ns', name: 'web-1' }],
  );
});

test('revertForeignMarks: puts back what a hand took out of use, and nothing that was let go of', (t) => {
  const byHand = viewOf([eni([address(IP, { claim: { ...MARK, uid: 'uid-1' }, state: 'Releasing' })])], []);
  const inUse = new Set([IP]);
  t.deepEqual(revertForeignMarks(byHand.status, { inUse, leaving: 'no' }, ids()).ips, [IP]);
  const { status } = viewOf([eni([LEFT])], []);
  t.is(revertForeignMarks(status, { inUse, leaving: 'no' }, ids()).status, status);
});

test('decideNode: while not every claim of a term was decided, the places of kept addresses are those of the status', (t) => {
  const { claims, ...view } = viewOf([eni([SERVES])], [HERE], { spec: { desiredRouteENIIP: 1 } });
  const pending = { ...view, reservedIps: new Map<string, string>() };
  const countOf = (staticRouteENIIPs: number, more: Partial<NodeView> = {}) => {
    const decision = decideNode({ ...pending, ...more, status: { ...view.status, staticRouteENIIPs } }, LEADER, ids());
    return 'status' in decision ? decision.status.staticRouteENIIPs : staticRouteENIIPs;
  };
  t.is(countOf(2), 2);
  t.is(countOf(0), 1);
  t.is(countOf(2, { claims: claims ?? new Map() }), 1);
});
