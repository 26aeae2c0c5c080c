import test from 'ava';
import type { NodeEniConfigSpec, NodeEniConfigStatus, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import type { ClaimRequest } from '../../../ipamd/decide/claim-request.ts';
import { decideNode } from '../../../ipamd/decide/decide-node.ts';
import type { Ids, Intent, Leader } from '../../../ipamd/decide/decision.ts';
import { type EniKind, KINDS } from '../../../ipamd/decide/eni-kinds.ts';
import type { NodeView } from '../../../ipamd/decide/node-view.ts';
import type { StaticEni } from '../../../ipamd/decide/static-eni.ts';

const LEADER: Leader = { epoch: 1, clusterId: 'cls-wants', requestTimeoutSeconds: 60 };
const IDS: Ids = { next: () => '00000000000000a1', now: () => '2026-01-01T00:00:00Z' };

function eni(serial: number, change: Partial<NodeEniInfo> = {}): NodeEniInfo {
  return {
    ...{ eniID: `eni-${serial}`, mac: `20:90:6f:00:00:0${serial}`, state: 'Attached', deviceIndex: serial },
    ...{ primaryIP: `10.0.1.${serial}`, gateway: '10.0.1.254', subnetID: 'subnet-a', subnetCIDR: '10.0.1.0/24' },
    ...{ assignmentID: `a-${serial}`, securityGroups: ['sg-node'], addresses: [] },
    ...change,
  };
}

/** Created, and on no instance yet. */
function created(serial: number, change: Partial<NodeEniInfo> = {}): NodeEniInfo {
  const { deviceIndex: _none, assignmentID: _never, ...rest } = eni(serial, { state: 'Attaching', ...change });
  return rest;
}

function viewOf(enis: readonly NodeEniInfo[], change: Partial<NodeView> = {}): NodeView {
  return {
    ...{ nodeName: 'n1', uid: 'uid-1', spec: { desiredRouteENIIP: 0, desiredDirectENI: 0 }, leaving: 'no' },
    status: { eniInfos: enis },
    instance: {
      ...{ instanceId: 'ins-1', instanceType: 'S5', zone: 'z', vpcId: 'vpc-1', isRunning: true },
      ...{ secondaryEnis: 4, secondaryIpsPerEni: 3 },
    },
    ...{ maxRouteENI: undefined, maxIPPerENI: undefined, maxDirectENI: 2, floor: 0, initialDemand: 0 },
    subnets: [{ subnetId: 'subnet-a', cidr: '10.0.1.0/24', freeIps: 9, isBlocked: false }],
    ...{ securityGroups: ['sg-node'], blocked: new Set(), stuck: new Set(), claims: new Map() },
    ...change,
  };
}

/** Decides until a call is begun or nothing changes any more. */
function decided(first: NodeView, kinds?: readonly EniKind[]) {
  let view = first;
  for (let round = 0; round < 10; round++) {
    const decision = decideNode(view, LEADER, IDS, kinds);
    if (decision.kind !== 'write') return { decision, status: 'status' in decision ? decision.status : view.status };
    view = { ...view, status: decision.status };
  }
  throw new Error('it does not come to rest');
}

function callOf(view: NodeView, kinds?: readonly EniKind[]): string {
  const { decision } = decided(view, kinds);
  if (decision.kind !== 'begin') return decision.kind === 'blocked' ? decision.reason : decision.kind;
  return [decision.intent.action, decision.intent.eniID].filter((part) => part !== undefined).join(' ');
}

for (const kind of ['shared', 'exclusive'] as const) {
  test(`planWants: attaches one ${kind} ENI while the cloud refuses another`, (t) => {
    const mode = kind === 'shared' ? {} : { mode: 'direct-eni' as const };
    const blocked = new Set(['call/AttachNetworkInterface/eni-1']);
    const spec = { desiredRouteENIIP: 0, desiredDirectENI: 2 };
    t.is(callOf(viewOf([created(1, mode), created(2, mode)], { spec, blocked })), 'AttachNetworkInterface eni-2');
  });
}

test('decideNode: shows that the cloud refuses to attach an ENI, though what is missing beside it would come to it', (t) => {
  const addresses = [{ ip: '10.0.1.11', assignmentID: 'b-1', state: 'Assigned' as const }];
  const view = viewOf([created(1, { addresses })], {
    spec: { desiredRouteENIIP: 3 },
    blocked: new Set(['call/AttachNetworkInterface/eni-1']),
  });
  const { decision, status } = decided(view);
  t.is(decision.kind === 'blocked' ? decision.reason : decision.kind, 'CloudRefused');
  t.is(status.conditions?.find(({ type }) => type === 'Ready')?.message, 'cannot attach eni-1');
});

test('decideNode: looks again when the first of the claims that wait may be met', (t) => {
  const claimOf = (name: string): ClaimRequest => ({
    key: `ns/${name}`,
    mode: 'direct-eni',
    goal: 'here',
    podUid: name,
  });
  const elsewhere: StaticEni = {
    ...{ eniId: 'eni-9', name: '', mac: '20:90:6f:00:00:09', primaryIp: '10.0.1.9', subnetId: 'subnet-a' },
    ...{ gateway: '10.0.1.254', subnetCidr: '10.0.1.0/24', claim: 'ns/web-1', zone: 'z', nodeName: 'n2' },
    ...{ isDetached: false, isAttachable: false },
  };
  const claims = new Map(['web-0', 'web-1'].map((name) => [`ns/${name}`, claimOf(name)]));
  const { decision } = decided(viewOf([], { maxDirectENI: 0, claims, staticEnis: new Map([['eni-9', elsewhere]]) }));
  t.is(decision.kind === 'blocked' ? decision.reason : decision.kind, 'DirectENILimit', 'of the first claim');
  t.is(decision.kind === 'blocked' ? decision.afterMs : undefined, 2_000, 'of the second');
});

test('decideNode: shows a removal that the cloud refuses behind one that waits its turn', (t) => {
  const intent: Intent = {
    id: '00000000000000b1',
    action: 'DetachNetworkInterface',
    phase: 'Recorded',
    leaderEpoch: 1,
    eniID: 'eni-3',
    requestTimeoutSeconds: 60,
    recordedAt: '2026-01-01T00:00:00Z',
  };
  const leaving = [1, 3].map((serial) => eni(serial, { state: 'Detaching' }));
  const { deviceIndex: _off, ...off } = eni(2, { state: 'Detaching' });
  const view = viewOf([], { blocked: new Set(['call/DeleteNetworkInterface/eni-2']) });
  const { status } = decided({ ...view, status: { eniInfos: [...leaving, off], intents: [intent] } });
  t.is(status.conditions?.find(({ type }) => type === 'CloudAccepts')?.message, 'cannot delete eni-2');
});

/** A kind of ENI that no release has. Its mode is none of the schema. */
const MODE = 'trunk' as string as NonNullable<NodeEniInfo['mode']>;
const TRUNKS = new WeakMap<NodeEniConfigSpec, number>();
const TRUNK: EniKind = {
  ...{ mode: MODE, isShared: false, minFreeIps: 1, usesExtension: false, condition: 'TrunkReady', noun: 'trunk ENIs' },
  demandOf: ({ spec }) => TRUNKS.get(spec) ?? 0,
  warmTargetOf: () => 0,
  maxEnisOf: () => 2,
};
const ALL = [...Object.values(KINDS), TRUNK];

function wanting(count: number, more: NodeEniConfigSpec = {}): Pick<NodeView, 'spec'> {
  const spec = { desiredRouteENIIP: 0, desiredDirectENI: 0, ...more };
  TRUNKS.set(spec, count);
  return { spec };
}

function conditionOf({ conditions = [] }: NodeEniConfigStatus): string | undefined {
  const condition = conditions.find(({ type }) => type === TRUNK.condition);
  return condition === undefined ? undefined : [condition.reason, condition.message].join(' ').trim();
}

test('decideNode: gives a node ENIs of a further kind, which is one more row', (t) => {
  const trunk = { mode: MODE };
  const creation = decided(viewOf([], wanting(1)), ALL);
  t.is(creation.decision.kind === 'begin' ? creation.decision.intent.action : '', 'CreateNetworkInterface');
  t.is(creation.decision.kind === 'begin' ? creation.decision.intent.tags?.['tke-eni-mode'] : '', MODE);
  t.is(conditionOf(creation.status), 'CallUnderWay more trunk ENIs are being requested');
  t.is(callOf({ ...viewOf([], wanting(1)), status: creation.status }, ALL), 'CallUnderWay', 'one creation at a time');
  t.is(callOf(viewOf([created(1, trunk)], wanting(1)), ALL), 'AttachNetworkInterface eni-1');
  const rest = decided(viewOf([eni(1, trunk)], wanting(1)), ALL);
  t.is(rest.decision.kind, 'idle');
  t.is(conditionOf(rest.status), 'SupplyMet');
  t.is(
    callOf(viewOf([eni(1, { ...trunk, securityGroups: [] })], wanting(1)), ALL),
    'ModifyNetworkInterfaceAttribute eni-1',
  );
});

test('decideNode: counts a further kind apart from the others, within its own limit and that of the instance', (t) => {
  const trunk = { mode: MODE };
  const full = decided(viewOf([eni(1, trunk), eni(2, trunk)], wanting(3)), ALL);
  t.is(
    conditionOf(full.status),
    'DirectENILimit 3 trunk ENIs are requested, 0 of them for claims; the node may have 2 beside its shared ones, and has 2',
  );
  const others = [eni(1), eni(2), eni(3, { mode: 'direct-eni' })];
  const beside = wanting(2, { desiredDirectENI: 1 });
  t.is(callOf(viewOf(others, beside), ALL), 'CreateNetworkInterface', 'the fourth place');
  t.regex(conditionOf(decided(viewOf([...others, eni(4, trunk)], beside), ALL).status) ?? '', /may have 1 beside/);
});

test('decideNode: takes an ENI of a further kind back when the agent offers it and it is not needed', (t) => {
  const trunk = { mode: MODE };
  const offer = { releasableENIs: [{ eniID: 'eni-1', assignmentID: 'a-1' }] };
  t.is(callOf(viewOf([eni(1, trunk)], wanting(0)), ALL), 'idle', 'not offered');
  t.is(callOf(viewOf([eni(1, trunk)], wanting(1, offer)), ALL), 'idle', 'needed');
  t.is(callOf(viewOf([eni(1, trunk)], wanting(0, offer)), ALL), 'DetachNetworkInterface eni-1');
  const { deviceIndex: _off, ...off } = eni(1, { ...trunk, state: 'Detaching' });
  t.is(callOf(viewOf([off], wanting(0)), ALL), 'DeleteNetworkInterface eni-1');
});
