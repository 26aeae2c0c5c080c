import test from 'ava';
import { type VpcIpClaim, vpcIpClaim } from '../../../../crd/vpc-ip-claim.ts';
import type { ClaimDecision, ClaimReason, DesiredClaim } from '../../../../ipamd/guests/static/claim-decision.ts';
import type { ClaimLocation, ClaimView } from '../../../../ipamd/guests/static/claim-view.ts';
import { decideReservation } from '../../../../ipamd/guests/static/decide-reservation.ts';
import { findAllocation } from '../../../../ipamd/guests/static/pod-allocation.ts';
import {
  isReservedFor,
  reservationName,
  reservationTags,
} from '../../../../ipamd/guests/static/reservation-identity.ts';
import { decodeOrThrow } from '../../../../runtime/decode.ts';

type Reservation = NonNullable<NonNullable<VpcIpClaim['status']>['reservation']>;

const IP = '10.1.0.9';
const SUBNET = 'subnet-1';
const COMMON = { clientToken: 'token', vpcID: 'vpc-1', subnetID: SUBNET } as const;
const RECORDED: Reservation = { ...COMMON, state: 'Recorded', ip: IP };
const RECORDED_ANY: Reservation = { ...COMMON, state: 'Recorded' };
const RESERVED: Reservation = { ...COMMON, state: 'Reserved', ip: IP, id: 'rsvip-1' };
const RELEASING: Reservation = { ...RESERVED, state: 'Releasing' };
const ORDER = { vpcId: 'vpc-1', subnetId: SUBNET };

const LOCATION: ClaimLocation = {
  nodeName: 'a',
  eniId: 'eni-1',
  mode: 'route-eni',
  subnetId: SUBNET,
  isAttached: true,
  ip: IP,
  assignmentId: '1',
  isReleasing: false,
  podUid: undefined,
};

type Case = {
  /** Node of the Pod; '' for no Pod. */
  readonly node: string;
  readonly reservation?: Reservation;
  readonly isOnEni?: boolean;
  readonly hasIp?: boolean;
  readonly reason?: ClaimReason;
  readonly phase?: DesiredClaim['status']['phase'];
  readonly claimUid?: string;
  readonly reservesKept?: boolean;
  readonly policy?: 'Never' | 'Immediate';
  readonly allocation?: string;
};

function viewOf({ node, reservation, isOnEni, hasIp = true, claimUid, policy = 'Never', ...rest }: Case): ClaimView {
  const podUID = claimUid ?? (node === '' ? undefined : 'u1');
  const claim = decodeOrThrow(
    vpcIpClaim,
    {
      apiVersion: 'networking.tke.cloud.tencent.com/v1',
      kind: 'VpcIPClaim',
      metadata: { name: 'web-0', namespace: 'default' },
      spec: { mode: 'route-eni', deletePolicy: policy, ...(podUID === undefined ? {} : { podUID }) },
      status: { phase: node === '' ? 'Retained' : 'Pending', ...(reservation === undefined ? {} : { reservation }) },
    },
    'claim',
  );
  const vip = { metadata: { name: IP }, spec: { type: 'Pod', ip: IP, subnetID: SUBNET } };
  const rule = { mode: 'route-eni', isStatic: true, faults: [] } as const;
  return {
    key: 'default/web-0',
    claim,
    // Only what decisions read.
    vips: hasIp ? [vip as never] : [],
    pod: node === '' ? undefined : { uid: 'u1', nodeName: node, labels: {}, rule },
    locations: isOnEni === true ? [LOCATION] : [],
    calls: [],
    nodeOf: (name) => ({
      exists: true,
      ...(name === 'eklet' ? { isSuper: true as const } : {}),
      enableStaticIp: true,
      zone: 'z1',
      unreachableForMs: 0,
      subnetsWithFreeSlots: new Set(),
    }),
    zoneOf: () => 'z1',
    subnetOf: () => SUBNET,
    holderOf: () => undefined,
    wait: undefined,
    conflict: undefined,
    hasEni: false,
    releasingForMs: 0,
    retainedForMs: 0,
    subnets: [
      {
        subnetId: 'subnet-other',
        cidr: '10.2.0.0/20',
        zone: 'z2',
        vpcId: 'vpc-1',
        totalIps: 9,
        freeIps: 9,
        isBlocked: false,
      },
      { subnetId: SUBNET, cidr: '10.1.0.0/20', zone: 'z1', vpcId: 'vpc-1', totalIps: 9, freeIps: 2, isBlocked: false },
      {
        subnetId: 'subnet-full',
        cidr: '10.3.0.0/20',
        zone: 'z1',
        vpcId: 'vpc-1',
        totalIps: 9,
        freeIps: 9,
        isBlocked: true,
      },
    ],
    reservesStatic: rest.reservesKept ?? false,
    defaultExpiredMs: 0,
    takeOverAfterMs: 60_000,
    isOffered: () => true,
    nowText: '2026-01-01T00:00:00Z',
  };
}

function decisionOf({ node, phase, reason = 'AddressAwaited' }: Case): Pick<ClaimDecision, 'claim' | 'vips'> {
  const status = { phase: phase ?? (node === '' ? 'Retained' : 'Pending') };
  return { claim: { kind: 'put', desired: { reason, status } as unknown as DesiredClaim }, vips: [] };
}

const step = test.macro((t, given: Case, expected: ReturnType<typeof decideReservation>) => {
  t.deepEqual(decideReservation(viewOf(given), decisionOf(given)), expected);
});
const NONE = { kind: 'none' } as const;
const RELEASE = { kind: 'release' } as const;
const RESERVE = { kind: 'reserve', order: { ...ORDER, ip: IP } } as const;
const RESERVE_ANY = { kind: 'reserve', order: { ...ORDER, ip: undefined } } as const;

test('decideReservation: a Pod of a node with ENIs needs none', step, { node: 'a' }, NONE);
test('decideReservation: a Pod of a super node', step, { node: 'eklet' }, RESERVE);
test(
  'decideReservation: any of a subnet of its zone with a free address',
  step,
  { node: 'eklet', hasIp: false },
  RESERVE_ANY,
);
test('decideReservation: not before the address left its ENI', step, { node: 'eklet', isOnEni: true }, NONE);
test('decideReservation: not before the claim names the Pod', step, { node: 'eklet', claimUid: 'u0' }, NONE);
test('decideReservation: not while the Pod cannot have it', step, { node: 'eklet', reason: 'StaticIPDisabled' }, NONE);
test('decideReservation: a recorded one is finished', step, { node: 'eklet', reservation: RECORDED }, RESERVE);
test('decideReservation: any, recorded', step, { node: 'eklet', hasIp: false, reservation: RECORDED_ANY }, RESERVE_ANY);
test('decideReservation: nothing is left to do', step, { node: 'eklet', reservation: RESERVED }, NONE);
test('decideReservation: it stays between Pods', step, { node: '', reservation: RESERVED }, NONE);
test('decideReservation: begun, and the Pod is gone', step, { node: '', reservation: RECORDED }, RESERVE);
test('decideReservation: begun, and the Pod is on another node', step, { node: 'a', reservation: RECORDED }, RELEASE);
test(
  'decideReservation: for another address',
  step,
  { node: 'eklet', reservation: { ...RESERVED, ip: '10.1.0.8' } },
  RELEASE,
);
test('decideReservation: a release goes on', step, { node: 'eklet', reservation: RELEASING }, RELEASE);
test('decideReservation: the claim ends', step, { node: '', phase: 'Releasing', reservation: RESERVED }, RELEASE);
test(
  'decideReservation: not before the ENI gave it back',
  step,
  { node: '', phase: 'Releasing', isOnEni: true, reservation: RESERVED },
  NONE,
);
test('decideReservation: none to end', step, { node: '', phase: 'Releasing' }, NONE);
test('decideReservation: between Pods it is kept on the ENI', step, { node: '' }, NONE);
test('decideReservation: between Pods, with the flag', step, { node: '', reservesKept: true }, RESERVE);
test(
  'decideReservation: the flag is for kept addresses',
  step,
  { node: '', reservesKept: true, policy: 'Immediate' },
  NONE,
);

test('findAllocation: is for one Pod, and only for an address that is reserved and on no ENI', (t) => {
  const given = { node: 'eklet', reservation: RESERVED };
  const expected = { ip: IP, subnetID: SUBNET, claim: 'default/web-0', uid: 'u1' };
  t.deepEqual(JSON.parse(findAllocation(viewOf(given)) ?? ''), expected);
  t.is(findAllocation(viewOf({ ...given, node: 'a' })), undefined);
  t.is(findAllocation(viewOf({ ...given, isOnEni: true })), undefined);
  t.is(findAllocation(viewOf({ ...given, claimUid: 'u0' })), undefined);
  t.is(findAllocation(viewOf({ ...given, reservation: RELEASING })), undefined);
  t.is(findAllocation(viewOf({ node: 'eklet' })), undefined);
});

test('isReservedFor: an owner is a cluster and a claim; names of different ones differ', (t) => {
  const tags = reservationTags('cls-1', 'default/web-0');
  t.true(isReservedFor({ tags }, 'cls-1', 'default/web-0'));
  t.false(isReservedFor({ tags }, 'cls-2', 'default/web-0'));
  t.false(isReservedFor({ tags }, 'cls-1', 'default/web-1'));
  t.false(isReservedFor({ tags: {} }, 'cls-1', 'default/web-0'));
  t.regex(reservationName('cls-1', 'default/web-0'), /^tke-ip-[0-9a-f]{24}$/);
  t.not(reservationName('cls-1', 'default/web-0'), reservationName('cls-2', 'default/web-0'));
});
