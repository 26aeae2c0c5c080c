import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { LEAST_FREE_IPS } from './choose-subnet.ts';
import { isDirectCreation } from './direct-creation.ts';
import { placesLeft } from './eni-places.ts';
import type { NodeView } from './node-view.ts';
import { isReservedSubnet } from './reserved-subnets.ts';
import { isUsable, roomOf, type Supply, sumOf, supplyOf, unseenCreations } from './supply.ts';
import { assignedIpv4Of, isShared } from './with-enis.ts';

/** How many Pod addresses a node can have, if all it asks for is given. */
export type Allocatable = {
  /** `has` and what can still come; never above `limit`. */
  readonly most: number;
  /** On ENIs that serve or are being attached, and asked for; of ENIs that go, what Pods have. */
  readonly has: number;
  /** What the node may have by its spec: what the agent takes for granted where it is told nothing else. */
  readonly limit: number;
  /** True where a refusal of the cloud holds it down, and not only what the subnets are described with. */
  readonly isRefused: boolean;
};

/**
 * Counts the Pod addresses that a node can have now: what it has, room on its ENIs and new ENIs, as far as their subnets
 * and the quotas that the cloud was found to have let it. Nodes that share a subnet are each told all that it has left.
 * Undefined while the instance is not known. Pure.
 */
export function decideAllocatable(view: NodeView, status: NodeEniConfigStatus): Allocatable | undefined {
  if (view.instance === undefined) return undefined;
  const supply = supplyOf(view, status);
  // A kept address is one of those that its Pod may count on.
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

/** The least share of the limit by which a number that is told must be wrong to be worth a write of its own. */
const WORTH_A_WRITE = 0.25;

/**
 * Tells whether a node is to be told anew, though nothing else of its object changes: when there is nothing more to give
 * and it believes that there is, or the other way round, or when what it was told is far off. `told` undefined: the limit.
 */
export function isWorthTelling({ most, has, limit }: Allocatable, told: number | undefined): boolean {
  const before = Math.min(told ?? limit, limit);
  if (before === most) return false;
  if (before > has !== most > has) return true;
  return Math.abs(before - most) > WORTH_A_WRITE * limit;
}

/** Returns the status with the number in it; none where nothing but the spec limits the node. Pure. */
export function withAllocatable(status: NodeEniConfigStatus, { most, limit }: Allocatable): NodeEniConfigStatus {
  const { allocatableRouteENIIPs: told, ...rest } = status;
  const next = most < limit ? most : undefined;
  if (next === told) return status;
  return next === undefined ? rest : { ...rest, allocatableRouteENIIPs: next };
}

/** What room is counted from; `free` is what is left of the subnets, and changes while it is. */
type Room = {
  readonly view: NodeView;
  readonly status: NodeEniConfigStatus;
  readonly supply: Supply;
  readonly shut: ReadonlySet<string>;
  readonly free: Map<string, number>;
};

const SUBNET = 'subnet/';
/** What keeps a node from new ENIs in whatever subnet. */
const NEW_ENI_KEYS = ['vpc-enis', 'instance-enis', 'call/CreateNetworkInterface'];
const OF_ROOM = [SUBNET, 'eni-ips/', 'call/AssignPrivateIpAddresses/', ...NEW_ENI_KEYS];

/** Refused now, or again and again until a moment ago: a breaker whose time is over is no sign of room. */
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

/** Pods stay on an ENI that drains, and take places of the node's capacity. */
function inUseElsewhere(view: NodeView, status: NodeEniConfigStatus): number {
  const others = (status.eniInfos ?? []).filter((eni) => isShared(eni) && !isOfUse(view, eni));
  return sumOf(others, (eni) => assignedIpv4Of(eni).filter(({ ip }) => view.inUse?.has(ip) === true).length);
}

/** Serves new Pods, or will. */
function isOfUse({ stuck }: NodeView, eni: NodeEniInfo): boolean {
  if (!isUsable(eni) || eni.state === 'Detaching') return false;
  return eni.state === 'Attached' || !stuck.has(eni.eniID);
}

/** Takes room on ENIs that are there out of the subnets. One that is not described limits nothing. */
function onEnis({ view, status, supply, shut, free }: Room): number {
  const open = (status.eniInfos ?? []).filter((eni) => {
    const keys = [`eni-ips/${eni.eniID}`, `call/AssignPrivateIpAddresses/${eni.eniID}`];
    return isOfUse(view, eni) && !isReservedSubnet(view, eni.subnetID) && !keys.some((key) => shut.has(key));
  });
  return sumOf(open, (eni) => take(free, eni.subnetID ?? '', roomOf(eni, status, supply.perEni)));
}

/** Takes room on ENIs that are asked for and not in the status yet: as much as they have once they are. */
function onComingEnis({ view, status, supply, shut, free }: Room): number {
  const shared = unseenCreations(status).filter((intent) => !isDirectCreation(intent));
  const coming = shared.filter(({ id, eniID = '' }) => {
    return !view.stuck.has(id) && !view.stuck.has(eniID) && !shut.has(`eni-ips/${eniID}`);
  });
  return sumOf(coming, ({ subnetID = '', ipCount = 0 }) => take(free, subnetID, Math.max(0, supply.perEni - ipCount)));
}

/** Takes new ENIs out of the subnets, each of the one with most left: an address for itself, the others for Pods. */
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
