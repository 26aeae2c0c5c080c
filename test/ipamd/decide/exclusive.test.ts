import test from 'ava';
import type { NodeEniConfigSpec, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import type { ClaimRequest } from '../../../ipamd/decide/claim-request.ts';
import { decideExclusiveMarks } from '../../../ipamd/decide/decide-exclusive-marks.ts';
import { decideNode } from '../../../ipamd/decide/decide-node.ts';
import type { CloudSnapshot, Ids, Leader, ObservedEni } from '../../../ipamd/decide/decision.ts';
import type { NodeView } from '../../../ipamd/decide/node-view.ts';
import { rebuildStatus } from '../../../ipamd/decide/rebuild-status.ts';
import { podIpsRemovedBy, revertForeignMarks } from '../../../ipamd/decide/revert-foreign-marks.ts';
import type { StaticEni } from '../../../ipamd/decide/static-eni.ts';

const LEADER: Leader = { epoch: 1, clusterId: 'cls-tables', requestTimeoutSeconds: 60 };
const KEY = 'ns/web-0';
const MARK = { namespace: 'ns', name: 'web-0' };
let serial = 0;
const IDS: Ids = { next: () => `id-${++serial}`, now: () => '2026-01-01T00:00:00Z' };

function eni(change: Partial<NodeEniInfo> = {}): NodeEniInfo {
  return {
    ...{ eniID: 'eni-1', mac: '20:90:6f:00:00:01', mode: 'direct-eni', state: 'Attached', deviceIndex: 1 },
    ...{ primaryIP: '10.0.1.9', gateway: '10.0.1.1', subnetID: 'subnet-a', subnetCIDR: '10.0.1.0/24' },
    ...{ assignmentID: 'a-1', securityGroups: ['sg-node'], addresses: [] },
    ...change,
  };
}

/** Taken off its instance, and kept. */
function off(): NodeEniInfo {
  const { deviceIndex: _gone, ...rest } = eni({ state: 'Detaching', claim: MARK });
  return rest;
}

/** Taken off its instance by somebody, after it served. */
function unbound(): NodeEniInfo {
  const { deviceIndex: _gone, ...rest } = eni({ state: 'Attaching' });
  return rest;
}

const KEPT: StaticEni = {
  ...{ eniId: 'eni-1', name: '', mac: '20:90:6f:00:00:01', primaryIp: '10.0.1.9', subnetId: 'subnet-a' },
  ...{ gateway: '10.0.1.1', subnetCidr: '10.0.1.0/24', claim: KEY, zone: 'z', isDetached: true, isAttachable: true },
};

function view(enis: readonly NodeEniInfo[], change: Partial<NodeView> = {}, wish?: Partial<ClaimRequest>): NodeView {
  const wishes = wish === undefined ? [] : [{ key: KEY, mode: 'direct-eni', goal: 'here', ...wish } as const];
  return {
    nodeName: 'n1',
    uid: 'uid-1',
    spec: { desiredDirectENI: 0 },
    status: { eniInfos: enis },
    leaving: 'no',
    instance: {
      ...{ instanceId: 'ins-1', instanceType: 'S5', zone: 'z', vpcId: 'vpc-1', isRunning: true },
      ...{ secondaryEnis: 2, secondaryIpsPerEni: 3 },
    },
    maxRouteENI: undefined,
    maxIPPerENI: undefined,
    maxDirectENI: 2,
    floor: 0,
    initialDemand: 0,
    subnets: [{ subnetId: 'subnet-a', cidr: '10.0.1.0/24', freeIps: 9, isBlocked: false }],
    securityGroups: ['sg-node'],
    blocked: new Set(),
    stuck: new Set(),
    claims: new Map(wishes.map((one) => [one.key, one])),
    ...change,
  };
}

const offered = (desiredDirectENI = 0): NodeEniConfigSpec => ({
  desiredDirectENI,
  releasableENIs: [{ eniID: 'eni-1', assignmentID: 'a-1' }],
});
const HERE = { podUid: 'pod-1' };

/** Decides until a call is begun or nothing is left to do; tells the call, and how the ENI stands then. */
function decided(first: NodeView): string {
  let current = first;
  for (let round = 0; round < 10; round++) {
    const decision = decideNode(current, LEADER, IDS);
    if (decision.kind === 'begin')
      return `${decision.intent.action} ${standing(decision.status.eniInfos ?? [])}`.trim();
    if (decision.kind !== 'write')
      return `${decision.kind === 'blocked' ? decision.reason : decision.kind} ${standing(current.status.eniInfos ?? [])}`.trim();
    current = { ...current, status: decision.status };
  }
  return 'restless';
}

function standing([one]: readonly NodeEniInfo[]): string {
  if (one === undefined) return '';
  return `${one.state}${one.claim === undefined ? '' : `/${one.claim.uid ?? 'kept'}`}`;
}

const EXTENDED: NonNullable<NodeView['instance']> = {
  ...{ instanceId: 'ins-1', instanceType: 'S5', zone: 'z', vpcId: 'vpc-1', isRunning: true },
  ...{ secondaryEnis: 2, extensionEnis: 2, secondaryIpsPerEni: 3 },
};

const TABLE: readonly (readonly [title: string, view: NodeView, decision: string])[] = [
  ['makes one that the agent wants', view([], { spec: { desiredDirectENI: 1 } }), 'CreateNetworkInterface'],
  ['makes none where the node serves none', view([], { spec: { desiredDirectENI: 1 }, maxDirectENI: 0 }), 'idle'],
  ['makes none before the agent has spoken where none is spare', view([], { spec: {} }), 'idle'],
  ['makes a spare one at first', view([], { spec: {}, initialExclusiveDemand: 1 }), 'CreateNetworkInterface'],
  [
    'makes none while the instance takes no more',
    view([], { spec: { desiredDirectENI: 1 }, blocked: new Set(['instance-enis']) }),
    'InstanceENILimit',
  ],
  [
    'makes none while those of the extension type are refused',
    view([], { spec: { desiredDirectENI: 1 }, blocked: new Set(['instance-enis/extension']), instance: EXTENDED }),
    'InstanceENILimit',
  ],
  ['leaves what is not offered', view([eni()]), 'idle Attached'],
  ['takes what is offered and not needed', view([eni()], { spec: offered() }), 'DetachNetworkInterface Detaching'],
  ['leaves what is offered and needed', view([eni()], { spec: offered(1) }), 'idle Attached'],
  [
    'leaves what is offered and has a live Pod',
    view([eni()], { spec: offered(), inUse: new Set(['10.0.1.9']) }),
    'idle Attached',
  ],
  [
    'deletes what came off its instance and is not needed',
    view([unbound()], { inUse: new Set() }),
    'DeleteNetworkInterface Detaching',
  ],
  [
    'attaches what came off its instance and is needed',
    view([unbound()], { inUse: new Set(), spec: { desiredDirectENI: 1 } }),
    'AttachNetworkInterface Attaching',
  ],
  [
    'leaves what came off its instance and has a live Pod',
    view([unbound()], { inUse: new Set(['10.0.1.9']) }),
    'idle Attaching',
  ],
  ['leaves what came off its instance while Pods are unknown', view([unbound()]), 'idle Attaching'],
  [
    'leaves what a load balancer may have of a node that is dead',
    view([eni()], { leaving: 'force', registered: new Set(['10.0.1.9']) }),
    'idle Attached',
  ],
  [
    'takes what a load balancer has where its Pod is elsewhere by now',
    view([eni({ claim: MARK })], { spec: offered(), registered: new Set(['10.0.1.9']) }, { goal: 'elsewhere' }),
    'DetachNetworkInterface Detaching/kept',
  ],
  [
    'leaves what a load balancer has where its claim ends',
    view([eni({ claim: MARK })], { spec: offered(), registered: new Set(['10.0.1.9']) }, { goal: 'free' }),
    'idle Attached/kept',
  ],
  ['takes all of a node that is dead', view([eni()], { leaving: 'force' }), 'DetachNetworkInterface Detaching'],
  ['waits for the agent of a node that drains', view([eni()], { leaving: 'drain' }), 'idle Attached'],
  ['lets the Pod in whose groups are in force', view([eni({ claim: MARK })], {}, HERE), 'idle Attached/pod-1'],
  [
    'sets other groups first',
    view([eni({ claim: MARK })], {}, { ...HERE, securityGroupIds: ['sg-special'] }),
    'ModifyNetworkInterfaceAttribute Attached/kept',
  ],
  [
    'lets no Pod in while the cloud refuses its groups',
    view(
      [eni({ claim: MARK })],
      { blocked: new Set(['call/ModifyNetworkInterfaceAttribute/eni-1']) },
      { ...HERE, securityGroupIds: ['sg-special'] },
    ),
    'CloudRefused Attached/kept',
  ],
  [
    'gives one of the pool its own groups back',
    view([eni({ securityGroups: ['sg-special'] })], { spec: { desiredDirectENI: 1 } }),
    'ModifyNetworkInterfaceAttribute Attached',
  ],
  ['gives a Pod one that the pool gives back', view([eni()], { spec: offered() }, HERE), 'idle Attached/pod-1'],
  ['gives no Pod one that the pool has', view([eni()], {}, HERE), 'CreateNetworkInterface Attached'],
  [
    'gives no Pod another address than its own',
    view([eni()], { spec: offered() }, { ...HERE, ip: '10.0.1.77' }),
    'DetachNetworkInterface Detaching',
  ],
  [
    'keeps one without a Pod',
    view([eni({ claim: { ...MARK, uid: 'pod-0' } })], { spec: offered() }, { goal: 'keep' }),
    'idle Attached/kept',
  ],
  [
    'hands none over before it is offered',
    view([eni({ claim: MARK })], {}, { goal: 'elsewhere' }),
    'idle Attached/kept',
  ],
  [
    'takes one over of an agent that does not answer',
    view([eni({ claim: MARK })], {}, { goal: 'elsewhere', mayTakeOver: true }),
    'DetachNetworkInterface Detaching/kept',
  ],
  [
    'takes one whose claim nobody knows of no living node',
    view([eni({ claim: MARK })], { spec: offered() }),
    'idle Attached/kept',
  ],
  ['deletes none that is kept', view([off()], {}, { goal: 'free' }), 'CallUnderWay Detaching/kept'],
  [
    'drops one that its VpcENI has',
    view([off()], { staticEnis: new Map([['eni-1', KEPT]]) }, { goal: 'free' }),
    'idle',
  ],
  [
    'attaches the one that is kept',
    view([], { staticEnis: new Map([['eni-1', KEPT]]) }, HERE),
    'AttachNetworkInterface Attaching/kept',
  ],
  [
    'makes no second one while the first is on another node',
    view(
      [],
      { staticEnis: new Map([['eni-1', { ...KEPT, isDetached: false, isAttachable: false, nodeName: 'n2' }]]) },
      HERE,
    ),
    'DirectENIElsewhere',
  ],
  [
    'makes no second one in another zone',
    view([], { staticEnis: new Map([['eni-1', { ...KEPT, zone: 'y' }]]) }, HERE),
    'DirectENIElsewhere',
  ],
  [
    'makes none while another node has a call for it',
    view([], { claimCallsElsewhere: new Set([KEY]) }, HERE),
    'CallUnderWay',
  ],
  [
    'says that there is no place',
    view([eni(), eni({ eniID: 'eni-2', mac: '20:90:6f:00:00:02', primaryIP: '10.0.1.8' })], {}, HERE),
    'DirectENILimit Attached',
  ],
  ['makes one in a subnet that the Pod takes', view([], {}, { ...HERE, subnetIds: ['subnet-b'] }), 'NoSubnetInZone'],
];

for (const [title, first, decision] of TABLE) {
  test(`decideNode: of exclusive ENIs ${title}`, (t) => {
    t.is(decided(first), decision);
  });
}

test('decideNode: tags an exclusive ENI, asks for no addresses, and gives it the groups of its Pod', (t) => {
  const decision = decideNode(view([], {}, { ...HERE, securityGroupIds: ['sg-special'] }), LEADER, IDS);
  t.is(decision.kind, 'begin');
  if (decision.kind !== 'begin') return;
  t.like(decision.intent, { claim: KEY, securityGroups: ['sg-special'], ipCount: undefined });
  t.is(decision.intent.tags?.['tke-eni-mode'], 'direct-eni');
  t.is(decision.priority, 'pod');
});

const SEEN: ObservedEni = {
  ...{ eniID: 'eni-1', mac: '20:90:6f:00:00:01', name: 'tke-1', primaryIP: '10.0.1.9', subnetID: 'subnet-a' },
  ...{ subnetCIDR: '10.0.1.0/24', gateway: '10.0.1.1', state: 'AVAILABLE', instanceID: 'ins-1', deviceIndex: 1 },
  ...{ securityGroups: ['sg-node'], ips: [], pendingIps: [], mode: 'direct-eni' },
};

function sightOf(seen: ObservedEni): CloudSnapshot {
  return { enis: new Map([[seen.eniID, seen]]), isComplete: true };
}

test('rebuildStatus: finds an exclusive ENI as one, without addresses for Pods', (t) => {
  const [found] =
    rebuildStatus({ instanceID: 'ins-1' }, {}, sightOf({ ...SEEN, ips: ['10.0.1.10'] }), IDS).eniInfos ?? [];
  t.like(found, { mode: 'direct-eni', state: 'Attached', addresses: [] });
});

test('rebuildStatus: leaves one that is kept elsewhere, and keeps one that was moved here', (t) => {
  const others = sightOf({ ...SEEN, isOthers: true });
  t.deepEqual(rebuildStatus({ instanceID: 'ins-1' }, {}, others, IDS).eniInfos ?? [], []);
  const held = { instanceID: 'ins-1', eniInfos: [eni({ claim: MARK, name: 'tke-1' })], routeENIs: 0 };
  t.is(rebuildStatus(held, {}, others, IDS).eniInfos?.length, 1);
});

test('decideNode: after a restore an ENI has its mark again from its VpcENI', (t) => {
  const kept = new Map([['eni-1', { ...KEPT, isDetached: false, isAttachable: false, nodeName: 'n1' }]]);
  t.is(decided(view([eni()], { staticEnis: kept, spec: offered() }, { goal: 'keep' })), 'idle Attached/kept');
});

test('revertForeignMarks: puts an exclusive ENI back whose own address a live Pod has', (t) => {
  const inUse = new Set(['10.0.1.9']);
  const { ips, status } = revertForeignMarks(
    { eniInfos: [eni({ state: 'Detaching' })] },
    { inUse, leaving: 'no' },
    IDS,
  );
  t.deepEqual(ips, ['10.0.1.9']);
  t.is(status.eniInfos?.[0]?.state, 'Attached');
  const intent = { id: 'i', phase: 'Recorded', leaderEpoch: 1, requestTimeoutSeconds: 60, eniID: 'eni-1' } as const;
  const call = { ...intent, action: 'DetachNetworkInterface', recordedAt: IDS.now() } as const;
  t.deepEqual(podIpsRemovedBy(call, { eniInfos: [eni()] }, { inUse, leaving: 'no' }), ['10.0.1.9']);
});

test('decideExclusiveMarks: tells of fewer places where shared ENIs have some, and of none where they do not', (t) => {
  const shared = eni({ eniID: 'eni-9', mode: 'route-eni' });
  const told = (enis: readonly NodeEniInfo[], change: Partial<NodeView> = {}) => {
    const seen = view(enis, change);
    return decideExclusiveMarks(seen, seen.status).allocatableDirectENIs;
  };
  t.is(told([eni()]), undefined);
  t.is(told([eni(), shared]), 1);
  t.is(told([eni(), shared], { maxDirectENI: 1 }), undefined, 'not more than it may have anyhow');
  t.is(told([shared], { maxDirectENI: 0 }), undefined);
  t.is(told([eni(), shared], { instance: undefined }), undefined, 'its places are not known');
});
