import { isInCidr } from '../../crd/ip-text.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { ClaimRequest } from './claim-request.ts';
import { freeSlotsOf, isUsable } from './count-slots.ts';
import type { NodeView } from './node-view.ts';
import { unmetIpRequests } from './open-requests.ts';
import { isReservedEni, isReservedSubnet } from './reserved-subnets.ts';
import { ipv4CountOf } from './with-enis.ts';

/** On which ENIs the static addresses that are requested for a node will be. */
export type ClaimPlacement = {
  /** Requests for an address without a call in flight, in the order of their keys. */
  readonly open: readonly ClaimRequest[];
  /** The ENI for each of them; a request that no ENI has capacity for is missing. */
  readonly eniOf: ReadonlyMap<string, NodeEniInfo>;
  /** Address slots of an ENI that are set aside for them, by the id of the ENI. */
  readonly reserved: ReadonlyMap<string, number>;
};

/**
 * Gives each open request a slot on a suitable ENI with free capacity. ENIs that accept a call now come first, then the
 * fullest.
 */
export function placeClaims(view: NodeView, status: NodeEniConfigStatus, perEni: number): ClaimPlacement {
  const intents = status.intents ?? [];
  const inFlight = new Set(intents.map(({ claim }) => claim));
  const busy = new Set(intents.flatMap(({ eniID, targetENIID }) => [eniID, targetENIID]));
  const open = unmetIpRequests(view, status).filter(({ key }) => !inFlight.has(key));
  const reserved = new Map<string, number>();
  const eniOf = new Map<string, NodeEniInfo>();
  const enis = open.length === 0 ? [] : (status.eniInfos ?? []).filter((eni) => acceptsAddresses(view, eni));
  const rank = (eni: NodeEniInfo) => (eni.state === 'Attached' ? 0 : 2) + (busy.has(eni.eniID) ? 1 : 0);
  for (const request of open) {
    const [best] = enis
      .filter((eni) => fitsEni(view, request, eni) && freeSlotsOf(eni, status, perEni) > (reserved.get(eni.eniID) ?? 0))
      .sort((one, other) => rank(one) - rank(other) || ipv4CountOf(other) - ipv4CountOf(one));
    if (best === undefined) continue;
    reserved.set(best.eniID, (reserved.get(best.eniID) ?? 0) + 1);
    eniOf.set(request.key, best);
  }
  return { open, eniOf, reserved };
}

/** Lists the addresses of which the request needs one; undefined when any address is suitable. */
export function acceptableIpsOf({ ip, ips, source }: ClaimRequest): readonly string[] | undefined {
  if (ip !== undefined) return [ip];
  return source === undefined ? ips : [];
}

/**
 * Reports whether a subnet is suitable for a request. A nominated-only subnet is suitable only if the request names it.
 */
export function fitsSubnet(
  view: NodeView,
  request: ClaimRequest,
  subnetId: string | undefined,
  cidr: string | undefined,
): boolean {
  if (request.subnetIds !== undefined && (subnetId === undefined || !request.subnetIds.includes(subnetId)))
    return false;
  const acceptable = acceptableIpsOf(request);
  if (acceptable === undefined && request.subnetIds === undefined && isReservedSubnet(view, subnetId)) return false;
  return acceptable === undefined || (cidr !== undefined && acceptable.some((ip) => isInCidr(ip, cidr)));
}

function fitsEni(view: NodeView, request: ClaimRequest, eni: NodeEniInfo): boolean {
  const { subnetID, subnetCIDR } = eni;
  const isUnnamed = acceptableIpsOf(request) === undefined && request.subnetIds === undefined;
  if (isUnnamed && isReservedEni(view, eni)) return false;
  return fitsSubnet(view, request, subnetID, subnetCIDR);
}

function acceptsAddresses({ blocked, stuck }: NodeView, eni: NodeEniInfo): boolean {
  const keys = [`eni-ips/${eni.eniID}`, `call/AssignPrivateIpAddresses/${eni.eniID}`];
  return isUsable(eni) && eni.state !== 'Detaching' && !stuck.has(eni.eniID) && !keys.some((key) => blocked.has(key));
}
