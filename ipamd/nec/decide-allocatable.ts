import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { LEAST_FREE_IPS } from './choose-subnet.ts';
import { isDirectCreation } from './direct-creation.ts';
import { placesLeft } from './eni-places.ts';
import type { NodeView } from './node-view.ts';
import { isReservedSubnet } from './reserved-subnets.ts';
import { isUsable, roomOf, type Supply, sumOf, supplyOf, unseenCreations } from './supply.ts';
import { assignedIpv4Of, isShared } from './with-enis.ts';

/** How many Pod addresses a node can have if everything that it requests is granted. */
export type Allocatable = {
  /** `has` plus what can still be added; never above `limit`. */
  readonly most: number;
  /**
   * Addresses on ENIs that serve or are being attached, and requested ones; on ENIs that are removed, those that Pods
   * use.
   */
  readonly has: number;
  /** Limit by the spec. The agent assumes this number when the status contains no other. */
  readonly limit: number;
  /** True when a refusal of the cloud lowers the number, not only the described free addresses of the subnets. */
  readonly isRefused: boolean;
};

/**
 * Counts the Pod addresses that a node can have now: its addresses, free capacity on its ENIs, and new ENIs, limited by
 * their subnets and by the quotas that the cloud has enforced. Nodes that share a subnet each count all of its free
 * addresses. Undefined while the instance is unknown.
 */
export function decideAllocatable(view: NodeView, status: NodeEniConfigStatus): Allocatable | undefined {
  if (view.instance === undefined) return undefined;
  const supply = supplyOf(view, status);
  // A static address counts too: its Pod can use it.
  const has = supply.have + supply.coming + supply.kept + inUseElsewhere(view, status);
  const { maxRouteENI, maxIPPerENI } = view.spec;
  const quota = supply.perEni * supply.mostEnis;
  const limit = maxRouteENI === undefined || maxIPPerENI === undefined ? quota : maxRouteENI * maxIPPerENI;
  const shut = shutKeysOf(view);
  const room: Room = { view, status, supply, shut, free: freeOf(view, shut) };
  const more = view.leaving === 'no' ? onEnis(room) + onComingEnis(room) + onNewEnis(room) : 0;
  const most = Math.min(limit, Math.max(has, Math.min(has + more, quota)));
  return { most, has, limit, isRefused: shut.size > 0 };
}

/** A number that differs by less than this share of the limit is not worth a write of its own. */
const WORTH_A_WRITE = 0.25;

/**
 * Tells whether the number is written although nothing else of the object changes: when it changes between "more can
 * come" and "nothing more can come", or differs much from the published number. `told` undefined: the limit.
 */
export function isWorthTelling({ most, has, limit }: Allocatable, told: number | undefined): boolean {
  const before = Math.min(told ?? limit, limit);
  if (before === most) return false;
  if (before > has !== most > has) return true;
  return Math.abs(before - most) > WORTH_A_WRITE * limit;
}

/** Returns the status with the number; without it where only the spec limits the node. */
export function withAllocatable(status: NodeEniConfigStatus, { most, limit }: Allocatable): NodeEniConfigStatus {
  const { allocatableRouteENIIPs: told, ...rest } = status;
  const next = most < limit ? most : undefined;
  if (next === told) return status;
  return next === undefined ? rest : { ...rest, allocatableRouteENIIPs: next };
}

/** What the free capacity is counted from. `free` is what is left in the subnets; counting reduces it. */
type Room = {
  readonly view: NodeView;
  readonly status: NodeEniConfigStatus;
  readonly supply: Supply;
  readonly shut: ReadonlySet<string>;
  readonly free: Map<string, number>;
};

const SUBNET = 'subnet/';
/** Breakers that block new ENIs in every subnet. */
const NEW_ENI_KEYS = ['vpc-enis', 'instance-enis', 'call/CreateNetworkInterface'];
const OF_ROOM = [SUBNET, 'eni-ips/', 'call/AssignPrivateIpAddresses/', ...NEW_ENI_KEYS];

/**
 * Keys that are refused now, or were refused repeatedly until a moment ago: a breaker that has just closed is no sign
 * of free capacity.
 */
function shutKeysOf({ blocked, doubtful }: NodeView): ReadonlySet<string> {
  return new Set([...blocked, ...(doubtful ?? [])].filter((key) => OF_ROOM.some((start) => key.startsWith(start))));
}

function freeOf({ subnets }: NodeView, shut: ReadonlySet<string>): Map<string, number> {
  const refused = [...shut].filter((key) => key.startsWith(SUBNET));
  return new Map([
    ...subnets.map(({ subnetId, isBlocked, freeIps }) => [subnetId, isBlocked ? 0 : freeIps] as const),
    ...refused.map((key) => [key.slice(SUBNET.length), 0] as const),
  ]);
}

/** Counts addresses of Pods on ENIs that drain: they use capacity of the node. */
function inUseElsewhere(view: NodeView, status: NodeEniConfigStatus): number {
  const others = (status.eniInfos ?? []).filter((eni) => isShared(eni) && !isOfUse(view, eni));
  return sumOf(others, (eni) => assignedIpv4Of(eni).filter(({ ip }) => view.inUse?.has(ip) === true).length);
}

/** Tells whether the ENI serves new Pods, now or later. */
function isOfUse({ stuck }: NodeView, eni: NodeEniInfo): boolean {
  if (!isUsable(eni) || eni.state === 'Detaching') return false;
  return eni.state === 'Attached' || !stuck.has(eni.eniID);
}

/**
 * Counts free capacity on existing ENIs and subtracts it from the subnets. A subnet that is not described does not
 * limit it.
 */
function onEnis({ view, status, supply, shut, free }: Room): number {
  const open = (status.eniInfos ?? []).filter((eni) => {
    const keys = [`eni-ips/${eni.eniID}`, `call/AssignPrivateIpAddresses/${eni.eniID}`];
    return isOfUse(view, eni) && !isReservedSubnet(view, eni.subnetID) && !keys.some((key) => shut.has(key));
  });
  return sumOf(open, (eni) => take(free, eni.subnetID ?? '', roomOf(eni, status, supply.perEni)));
}

/** Counts capacity of ENIs that are requested and not in the status yet, as much as they will have. */
function onComingEnis({ view, status, supply, shut, free }: Room): number {
  const shared = unseenCreations(status).filter((intent) => !isDirectCreation(intent));
  const coming = shared.filter(({ id, eniID = '' }) => {
    return !view.stuck.has(id) && !view.stuck.has(eniID) && !shut.has(`eni-ips/${eniID}`);
  });
  return sumOf(coming, ({ subnetID = '', ipCount = 0 }) => take(free, subnetID, Math.max(0, supply.perEni - ipCount)));
}

/**
 * Counts capacity of new ENIs, each in the subnet with the most free addresses. One address is for the ENI itself, the
 * others are for Pods.
 */
function onNewEnis({ view, status, supply, shut, free }: Room): number {
  if (NEW_ENI_KEYS.some((key) => shut.has(key)) || supply.perEni === 0) return 0;
  const choices = view.subnets.map(({ subnetId }) => subnetId);
  const leftOf = (subnetId: string) => free.get(subnetId) ?? 0;
  const places = Array.from({ length: placesLeft(view, status, supply) });
  return sumOf(places, () => {
    const [best] = [...choices].sort((one, other) => leftOf(other) - leftOf(one));
    if (best === undefined || leftOf(best) < LEAST_FREE_IPS) return 0;
    return take(free, best, supply.perEni + 1) - 1;
  });
}

function take(free: Map<string, number>, subnetId: string, wanted: number): number {
  const left = free.get(subnetId);
  if (left === undefined) return wanted;
  const taken = Math.min(left, wanted);
  free.set(subnetId, left - taken);
  return taken;
}
