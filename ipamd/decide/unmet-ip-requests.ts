import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from './claim-marks.ts';
import type { ClaimRequest } from './claim-request.ts';
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
