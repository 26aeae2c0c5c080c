import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf, claimMarkOf } from './claim-marks.ts';
import type { NodeView } from './node-view.ts';
import { type Offers, offersOf } from './offers.ts';
import { countStaticIps } from './open-requests.ts';
import { type AddressPlans, planAddresses } from './plan-addresses.ts';
import { isIpv4, isShared, releasing, withEnis } from './with-enis.ts';

/**
 * Returns the status with the claim marks up to date. An address that belongs to a claim gets its mark; the mark has
 * the uid of the Pod on this node, or none. An address that another node takes over becomes Releasing once the agent
 * has released it. An address that the other node has is removed. Returns the same status when nothing changes.
 */
export function withClaims(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const marked = withMarks(view, status);
  const context: Marking = { view, plans: planAddresses(view, marked), offers: offersOf({ ...view, status: marked }) };
  const busy = new Set((marked.intents ?? []).map(({ eniID }) => eniID));
  const enis = (marked.eniInfos ?? []).map((eni) => {
    if (!isShared(eni) || !(eni.addresses ?? []).some(({ claim }) => claim !== undefined)) return eni;
    const addresses = (eni.addresses ?? []).flatMap((address) => {
      if (address.claim === undefined || !isIpv4(address.ip)) return [address];
      return hasMoved(view, eni, address) && !busy.has(eni.eniID) ? [] : [withCurrentMark(context, eni, address)];
    });
    return { ...eni, addresses };
  });
  return withStaticIpCount(view, withEnis(marked, enis));
}

type Marking = { readonly view: NodeView; readonly plans: AddressPlans; readonly offers: Offers };

/** Marks unmarked addresses that belong to a claim, unless another Pod uses them according to the API server. */
function withMarks(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const ownerOf = ownersOf(view);
  const enis = (status.eniInfos ?? []).map((eni) => {
    if (!isShared(eni) || !(eni.addresses ?? []).some((address) => isUnmarked(view, ownerOf, address))) return eni;
    const addresses = (eni.addresses ?? []).map((address) =>
      isUnmarked(view, ownerOf, address) ? { ...address, claim: claimMarkOf(ownerOf(address.ip) ?? '') } : address,
    );
    return { ...eni, addresses };
  });
  return withEnis(status, enis);
}

function isUnmarked({ inUse, podNames }: NodeView, ownerOf: OwnerOf, address: NodeEniAddress): boolean {
  const { ip, state, claim } = address;
  const owner = claim === undefined && state === 'Assigned' ? ownerOf(ip) : undefined;
  return owner !== undefined && (inUse?.has(ip) !== true || podNames?.get(ip) === owner);
}

/** Returns the key of the claim that an address belongs to. */
type OwnerOf = (ip: string) => string | undefined;

/**
 * Looks up claims by address. The map of the whole cluster is large, so it is not copied: each pass of each node would
 * do so.
 */
function ownersOf({ reservedIps, claims }: NodeView): OwnerOf {
  const requested = new Map<string, string>();
  for (const { key, mode, goal, ip } of claims?.values() ?? []) {
    if (mode === 'route-eni' && goal === 'here' && ip !== undefined && !requested.has(ip)) requested.set(ip, key);
  }
  return (ip) => reservedIps?.get(ip) ?? requested.get(ip);
}

/** Reports whether another node's object has the address on its own ENI: the cloud has moved it. */
function hasMoved({ movedTo }: NodeView, eni: NodeEniInfo, { ip, state }: NodeEniAddress): boolean {
  const there = movedTo?.get(ip);
  return state === 'Releasing' && there !== undefined && there !== eni.eniID;
}

function withCurrentMark({ view, plans, offers }: Marking, eni: NodeEniInfo, address: NodeEniAddress): NodeEniAddress {
  const { claim } = address;
  const request = claim === undefined ? undefined : view.claims?.get(claimKeyOf(claim));
  if (claim === undefined || request === undefined) return address;
  const plan = plans.of(address);
  const uid = plan === 'serves' ? request.podUid : undefined;
  // A released address stays so: while another node may be moving it, no Pod may get it here.
  const isReassigned = address.state === 'Releasing' && claim.uid !== uid;
  const mark = claimMarkOf(request.key, isReassigned ? undefined : uid);
  const marked = claim.uid === mark.uid ? address : { ...address, claim: mark };
  const isReleased = offers.isOffered(address) || (address.state === 'Assigned' && plans.isTakenOver(address));
  return plan === 'handed' && isReleased && eni.state === 'Attached' ? releasing(marked) : marked;
}

/** Writes the number of static addresses; absent for 0. */
function withStaticIpCount(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const count = countStaticIps(view, status);
  const { staticRouteENIIPs: before, ...rest } = status;
  if ((before ?? 0) === count) return status;
  return count === 0 ? rest : { ...rest, staticRouteENIIPs: count };
}
