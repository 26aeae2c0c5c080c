import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { Ids, Intent } from './decision.ts';
import type { NodeView } from './node-view.ts';
import { newAssignment } from './observed-eni.ts';
import { isShared, withEnis } from './with-enis.ts';

/**
 * Lists the addresses of live Pods that a call would remove. ipamd requests no such call while a Pod uses the address:
 * such an intent was written by another client and must not be sent.
 */
export function podIpsRemovedBy(
  intent: Intent,
  status: NodeEniConfigStatus,
  { inUse, leaving }: Pick<NodeView, 'inUse' | 'leaving'>,
): readonly string[] {
  if (inUse === undefined || leaving === 'force') return [];
  const eni = status.eniInfos?.find(({ eniID }) => eniID === intent.eniID);
  const all = eni === undefined ? [] : podIpsOf(eni);
  switch (intent.action) {
    case 'UnassignPrivateIpAddresses':
      return (intent.ips ?? []).filter((ip) => inUse.has(ip));
    case 'DetachNetworkInterface':
    case 'DeleteNetworkInterface':
      return all.filter((ip) => inUse.has(ip));
    default:
      return [];
  }
}

/** A status, and its addresses that were marked for removal although Pods use them. */
type RevertedMarks = { readonly status: NodeEniConfigStatus; readonly ips: readonly string[] };

/**
 * Reverts marks of other clients as long as no call has acted on them: an address of a live Pod that is Releasing
 * becomes Assigned again, an ENI with such a Pod that is Detaching becomes Attached again. ipamd itself sets neither
 * while a Pod uses the address. Nothing is reverted on a node whose Pods cannot be alive any more. Takes ids.
 */
export function revertForeignMarks(
  status: NodeEniConfigStatus,
  { inUse, leaving }: Pick<NodeView, 'inUse' | 'leaving'>,
  ids: Ids,
): RevertedMarks {
  if (inUse === undefined || inUse.size === 0 || leaving === 'force') return { status, ips: [] };
  const busy = new Set((status.intents ?? []).map((intent) => intent.eniID));
  // A released static address has no uid any more: another node may be moving it.
  const isMarked = ({ ip, state, claim }: NodeEniAddress) =>
    state === 'Releasing' && inUse.has(ip) && (claim === undefined || claim.uid !== undefined);
  const hasPods = (eni: NodeEniInfo) => podIpsOf(eni).some((ip) => inUse.has(ip));
  const ips: string[] = [];
  const enis = (status.eniInfos ?? []).map((eni): NodeEniInfo => {
    if (busy.has(eni.eniID) || eni.deviceIndex === undefined || !hasPods(eni)) return eni;
    const isDetaching = eni.state === 'Detaching';
    const marked = (eni.addresses ?? []).filter(isMarked);
    if (!isDetaching && marked.length === 0) return eni;
    ips.push(...podIpsOf(eni).filter((ip) => inUse.has(ip)));
    const addresses = (eni.addresses ?? []).map((address) =>
      isMarked(address) ? { ...address, ...newAssignment(address.ip, ids) } : address,
    );
    return { ...eni, state: 'Attached', addresses };
  });
  return ips.length === 0 ? { status, ips } : { status: withEnis(status, enis), ips };
}

/** Addresses that Pods may use; of an exclusive ENI also its own. */
function podIpsOf(eni: NodeEniInfo): readonly string[] {
  const own = isShared(eni) || eni.primaryIP === undefined ? [] : [eni.primaryIP];
  return [...own, ...(eni.addresses ?? []).map(({ ip }) => ip)];
}
