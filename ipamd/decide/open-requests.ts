import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { pendingCreationsOf } from '../../crd/subnet-supply.ts';
import { claimKeyOf, eniClaimOf } from './claim-marks.ts';
import type { ClaimRequest } from './claim-request.ts';
import { type EniKind, isCreationOf, isOfKind } from './eni-kinds.ts';
import type { NodeView } from './node-view.ts';
import { isIpv4, isShared } from './with-enis.ts';

/** Lists the requests for an address on this node that no address here fulfils yet. */
export function unmetIpRequests({ claims, leaving }: NodeView, status: NodeEniConfigStatus): readonly ClaimRequest[] {
  if (claims === undefined || leaving !== 'no') return [];
  const here = new Map<string, Set<string>>();
  for (const eni of (status.eniInfos ?? []).filter((one) => isShared(one) && one.state !== 'Detaching')) {
    for (const { ip, state, claim } of eni.addresses ?? []) {
      if (claim === undefined || state !== 'Assigned' || !isIpv4(ip)) continue;
      const key = claimKeyOf(claim);
      here.set(key, (here.get(key) ?? new Set()).add(ip));
    }
  }
  const isMet = ({ key, ip }: ClaimRequest) => (ip === undefined ? here.has(key) : here.get(key)?.has(ip) === true);
  return [...claims.values()]
    .filter((request) => request.mode === 'route-eni' && request.goal === 'here' && !isMet(request))
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}

/**
 * Counts the address slots on the node's shared ENIs that static addresses use or will use. Until a term has decided every claim
 * once, the number that the status has counts: requests may be missing.
 */
export function countStaticIps(view: NodeView, status: NodeEniConfigStatus): number {
  const usable = (status.eniInfos ?? []).filter(
    (eni) => isShared(eni) && eni.draining !== true && eni.state !== 'Detaching',
  );
  const marked = usable.flatMap((eni) =>
    (eni.addresses ?? []).filter(({ ip, claim }) => claim !== undefined && isIpv4(ip)),
  );
  const markedClaims = new Set(marked.map(({ claim }) => (claim === undefined ? '' : claimKeyOf(claim))));
  const count = marked.length + unmetIpRequests(view, status).filter(({ key }) => !markedClaims.has(key)).length;
  const isBegun = view.reservedIps === undefined || view.claims !== undefined;
  return isBegun ? count : Math.max(count, status.staticRouteENIIPs ?? 0);
}

/** Lists the ENIs of a kind. */
export function enisOf(kind: EniKind, { eniInfos = [] }: NodeEniConfigStatus): readonly NodeEniInfo[] {
  return eniInfos.filter((eni) => isOfKind(kind, eni));
}

/** Lists the requests for an exclusive ENI here for which the node has neither an ENI nor a call in flight; by key. */
export function openEniRequests(kind: EniKind, view: NodeView, status: NodeEniConfigStatus): readonly ClaimRequest[] {
  const enis = enisOf(kind, status);
  const creations = pendingCreationsOf(status).filter((intent) => isCreationOf(kind, intent));
  const inFlight = new Set(creations.map(({ claim }) => claim));
  const isMet = (request: ClaimRequest) =>
    enis.some((eni) => eniClaimOf(eni) === request.key && matchesEni(request, eni));
  return eniRequestsHere(kind, view).filter((request) => !inFlight.has(request.key) && !isMet(request));
}

/** Reports whether an ENI with the mark of a request's claim is the one for its Pod on this node. */
export function matchesEni({ goal, ip }: ClaimRequest, { primaryIP }: NodeEniInfo): boolean {
  return goal === 'here' && (ip === undefined || ip === primaryIP);
}

/** Lists the requests for an exclusive ENI on this node, by key. */
export function eniRequestsHere(kind: EniKind, { claims }: Pick<NodeView, 'claims'>): readonly ClaimRequest[] {
  return [...(claims?.values() ?? [])]
    .filter(({ mode, goal }) => mode === kind.mode && goal === 'here')
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}
