import { IPS_PER_CALL } from '../../cloud/batches.ts';
import type { NodeEniAddress, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { removableEnis } from './decide-removal.ts';
import type { Blocked } from './decision.ts';
import { beginCall, checkBreakers, type DecisionContext, type Step } from './decision-context.ts';
import { type Offers, offersOf } from './offers.ts';
import { type AddressPlans, planAddresses } from './plan-addresses.ts';
import { ipv4CountOf, isIpv4, isShared, releasing, withEni } from './with-enis.ts';

/**
 * Decides which addresses are unassigned: those that are Releasing without a call, then those that are offered and not
 * needed. They are of one ENI, the emptiest first. They become Releasing in the write that records the call. Takes ids.
 */
export function decideRelease(context: DecisionContext): Step {
  const offers = offersOf({ ...context.view, status: context.status });
  const plans = planAddresses(context.view, context.status);
  const removable = new Set(removableEnis(context).map((eni) => eni.eniID));
  const candidates = (context.status.eniInfos ?? [])
    .filter((eni) => eni.state === 'Attached' && isShared(eni))
    .filter((eni) => !context.busy.has(eni.eniID) && !removable.has(eni.eniID))
    .map((eni) => ({ eni, ips: releasableIps(context, offers, plans, eni) }))
    .filter(({ ips }) => ips.length > 0)
    .sort((one, other) => ipv4CountOf(one.eni) - ipv4CountOf(other.eni));
  let firstBlocked: Blocked | undefined;
  for (const { eni, ips } of candidates) {
    const { eniID } = eni;
    const key = `call/UnassignPrivateIpAddresses/${eniID}`;
    const blocked = checkBreakers(context, [key], 'CloudRefused', `cannot take addresses off ${eniID}`);
    if (blocked === undefined) {
      const status = withEni(context.status, eniID, (one) => ({
        ...one,
        addresses: (one.addresses ?? []).map((address) => (ips.includes(address.ip) ? releasing(address) : address)),
      }));
      return beginCall(context, 'UnassignPrivateIpAddresses', { eniID, ips }, status);
    }
    firstBlocked ??= blocked;
  }
  return firstBlocked;
}

/**
 * Lists at most ten addresses of an ENI. Of an ENI that stays, only as many offered ones as the node has above its
 * demand.
 */
function releasableIps(
  { supply }: DecisionContext,
  offers: Offers,
  plans: AddressPlans,
  eni: NodeEniInfo,
): readonly string[] {
  const addresses = (eni.addresses ?? []).filter((address) => isIpv4(address.ip));
  const left = addresses.filter((address) => mustUnassign(offers, plans, address));
  const offered = addresses.filter((address) => address.claim === undefined && offers.isOffered(address));
  const surplus = eni.draining === true ? offered.length : Math.max(0, supply.have - supply.want);
  return [...left, ...offered.slice(0, surplus)].slice(0, IPS_PER_CALL).map((address) => address.ip);
}

/**
 * Reports whether an address is unassigned although it is not surplus: it is Releasing without a call. A static address
 * only if it leaves this node for good, or is assigned again to the Pod that is here: a released address serves again
 * only after the cloud has assigned it again, because another node may have requested it in between.
 */
function mustUnassign(offers: Offers, plans: AddressPlans, address: NodeEniAddress): boolean {
  if (plans.isBusyElsewhere(address)) return false;
  switch (plans.of(address)) {
    case 'pooled':
    case 'serves':
      return address.state === 'Releasing';
    case 'goes':
      return (
        address.state === 'Releasing' ||
        offers.isOffered(address) ||
        (plans.isTakenOver(address) && !offers.isHeld(address))
      );
    default:
      return false;
  }
}
