import { isExclusiveCreation } from '../../crd/eni-places.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { pendingCreationsOf } from '../../crd/subnet-supply.ts';
import { countSlots, freeSlotsOf, isUsable, type Slots, sumOf } from './count-slots.ts';
import type { Intent } from './decision.ts';
import { KINDS } from './eni-kinds.ts';
import type { NodeView } from './node-view.ts';
import { type ClaimPlacement, placeClaims } from './place-claims.ts';
import { isReservedEni } from './reserved-subnets.ts';
import { assignedIpv4Of, isShared } from './with-enis.ts';

/** How many Pod addresses a node can have if everything that it requests is granted. */
export type Allocatable = {
  /** `has` plus what can still be added; never above `limit`. */
  readonly max: number;
  /**
   * Addresses on ENIs that serve or are being attached, requested ones, and those of claims that have a place; on ENIs
   * that are removed, those that Pods use.
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
  const supply = countSlots(KINDS.shared, view, status);
  const claims = placeClaims(view, status, supply.perEni);
  const unplaced = claims.open.length - claims.eniOf.size;
  // A static address counts too: its Pod can use it. A claim without a place counts only as far as new ENIs will do.
  const known = supply.have + supply.coming + supply.claimed - unplaced + inUseElsewhere(view, status);
  const { maxRouteENI, maxIPPerENI } = view.spec;
  const quota = supply.perEni * supply.maxEnis;
  const limit = maxRouteENI === undefined || maxIPPerENI === undefined ? quota : maxRouteENI * maxIPPerENI;
  const refusedKeys = refusedKeysOf(view);
  const capacity: Capacity = { view, status, supply, claims, refusedKeys, free: freeOf(view, refusedKeys) };
  const stays = view.leaving === 'no';
  const freeNow = stays ? freeOnEnis(capacity) : 0;
  const freeLater = stays ? freeOnComingEnis(capacity) + freeOnNewEnis(capacity) : 0;
  const has = known + (stays ? Math.min(unplaced, placesOnNewEnis(capacity)) : 0);
  const max = Math.min(limit, Math.max(has, Math.min(Math.max(has, known + freeLater) + freeNow, quota)));
  return { max, has, limit, isRefused: refusedKeys.size > 0 };
}

/** A number that differs by less than this share of the limit is not worth a write of its own. */
const MIN_REPORTED_SHARE = 0.25;

/**
 * Reports whether the number is written although nothing else of the object changes: when it changes between "more can
 * come" and "nothing more can come", or differs much from the published number. `reported` undefined: the limit.
 */
export function isWorthReporting({ max, has, limit }: Allocatable, reported: number | undefined): boolean {
  const before = Math.min(reported ?? limit, limit);
  if (before === max) return false;
  if (before > has !== max > has) return true;
  return Math.abs(before - max) > MIN_REPORTED_SHARE * limit;
}

/** Returns the status with the number; without it where only the spec limits the node. */
export function withAllocatable(status: NodeEniConfigStatus, { max, limit }: Allocatable): NodeEniConfigStatus {
  const { allocatableRouteENIIPs: written, ...rest } = status;
  const next = max < limit ? max : undefined;
  if (next === written) return status;
  return next === undefined ? rest : { ...rest, allocatableRouteENIIPs: next };
}

/** What the free capacity is counted from. `free` is what is left in the subnets; counting reduces it. */
type Capacity = {
  readonly view: NodeView;
  readonly status: NodeEniConfigStatus;
  readonly supply: Slots;
  readonly claims: ClaimPlacement;
  readonly refusedKeys: ReadonlySet<string>;
  readonly free: Map<string, number>;
};

const SUBNET = 'subnet/';
/** Breakers that block new ENIs in every subnet. */
const NEW_ENI_KEYS = ['vpc-enis', 'instance-enis', 'call/CreateNetworkInterface'];
const CAPACITY_KEYS = [SUBNET, 'eni-ips/', 'call/AssignPrivateIpAddresses/', ...NEW_ENI_KEYS];

/**
 * Keys that are refused now, or were refused repeatedly until a moment ago: a breaker that has just closed is no sign
 * of free capacity.
 */
function refusedKeysOf({ blocked, doubtful }: NodeView): ReadonlySet<string> {
  return new Set(
    [...blocked, ...(doubtful ?? [])].filter((key) => CAPACITY_KEYS.some((start) => key.startsWith(start))),
  );
}

function freeOf({ subnets }: NodeView, refusedKeys: ReadonlySet<string>): Map<string, number> {
  const refused = [...refusedKeys].filter((key) => key.startsWith(SUBNET));
  return new Map([
    ...subnets.map(({ subnetId, isBlocked, freeIps }) => [subnetId, isBlocked ? 0 : freeIps] as const),
    ...refused.map((key) => [key.slice(SUBNET.length), 0] as const),
  ]);
}

/** Counts addresses of Pods on ENIs that drain: they use capacity of the node. */
function inUseElsewhere(view: NodeView, status: NodeEniConfigStatus): number {
  const others = (status.eniInfos ?? []).filter((eni) => isShared(eni) && !servesPods(view, eni));
  return sumOf(others, (eni) => assignedIpv4Of(eni).filter(({ ip }) => view.inUse?.has(ip) === true).length);
}

/** Reports whether the ENI serves new Pods, now or later. */
function servesPods({ stuck }: NodeView, eni: NodeEniInfo): boolean {
  if (!isUsable(eni) || eni.state === 'Detaching') return false;
  return eni.state === 'Attached' || !stuck.has(eni.eniID);
}

/**
 * Counts free capacity on existing ENIs and subtracts it from the subnets. A subnet that is not described does not
 * limit it.
 */
function freeOnEnis({ view, status, supply, claims, refusedKeys, free }: Capacity): number {
  const open = (status.eniInfos ?? []).filter((eni) => {
    const keys = [`eni-ips/${eni.eniID}`, `call/AssignPrivateIpAddresses/${eni.eniID}`];
    return servesPods(view, eni) && !isReservedEni(view, eni) && !keys.some((key) => refusedKeys.has(key));
  });
  return sumOf(open, (eni) => {
    const slots = freeSlotsOf(eni, status, supply.perEni) - (claims.reserved.get(eni.eniID) ?? 0);
    return subtractFree(free, eni.subnetID ?? '', slots);
  });
}

/** Counts capacity of ENIs that are requested and not in the status yet, as much as they will have. */
function freeOnComingEnis(capacity: Capacity): number {
  return sumOf(comingEnisOf(capacity), (intent) =>
    subtractFree(capacity.free, intent.subnetID ?? '', freeSlotsOfComing(capacity, intent)),
  );
}

function comingEnisOf({ view, status, refusedKeys }: Capacity): readonly Intent[] {
  const shared = pendingCreationsOf(status).filter((intent) => !isExclusiveCreation(intent));
  return shared.filter(({ id, eniID = '' }) => {
    return !view.stuck.has(id) && !view.stuck.has(eniID) && !refusedKeys.has(`eni-ips/${eniID}`);
  });
}

/** Counts the free address slots that an ENI will have. One that is created for a claim has a slot less. */
function freeSlotsOfComing({ supply }: Capacity, { ipCount = 0, claim }: Intent): number {
  return Math.max(0, supply.perEni - Math.max(ipCount, claim === undefined ? 0 : 1));
}

/** Counts the address slots that claims without a place can get, whatever the subnets have left. */
function placesOnNewEnis(capacity: Capacity): number {
  const { supply, refusedKeys } = capacity;
  const isRefused = NEW_ENI_KEYS.some((key) => refusedKeys.has(key));
  const ofNew = isRefused ? 0 : supply.freeEnis * supply.perEni;
  return ofNew + sumOf(comingEnisOf(capacity), (intent) => freeSlotsOfComing(capacity, intent));
}

/**
 * Counts capacity of new ENIs, each in the subnet with the most free addresses. One address is for the ENI itself, the
 * others are for Pods.
 */
function freeOnNewEnis({ view, supply, refusedKeys, free }: Capacity): number {
  if (NEW_ENI_KEYS.some((key) => refusedKeys.has(key)) || supply.perEni === 0) return 0;
  const choices = view.subnets.map(({ subnetId }) => subnetId);
  const leftOf = (subnetId: string) => free.get(subnetId) ?? 0;
  const slots = Array.from({ length: supply.freeEnis });
  return sumOf(slots, () => {
    const [best] = [...choices].sort((one, other) => leftOf(other) - leftOf(one));
    if (best === undefined || leftOf(best) < KINDS.shared.minFreeIps) return 0;
    return subtractFree(free, best, supply.perEni + 1) - 1;
  });
}

function subtractFree(free: Map<string, number>, subnetId: string, count: number): number {
  const left = free.get(subnetId);
  if (left === undefined) return count;
  const taken = Math.min(left, count);
  free.set(subnetId, left - taken);
  return taken;
}
