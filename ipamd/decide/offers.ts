import type { NodeEniAddress, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from './claim-marks.ts';
import type { NodeView } from './node-view.ts';
import { type AddressPlan, planAddresses } from './plan-addresses.ts';

/** Which addresses and ENIs the agent offers to give back. */
export type Offers = {
  /** Offered, with the id of the current assignment, and still assigned. */
  isOffered(address: NodeEniAddress): boolean;
  /** Nothing on the ENI is in use: each address is offered or Releasing, or nothing can be in use any more. */
  isVacant(eni: NodeEniInfo): boolean;
  /** A load balancer may still have it as a target, and it does not move with the Pod of its claim. */
  isHeld(address: Target): boolean;
  /** An exclusive ENI that is offered, with the id of the current attachment, and that no live Pod uses. */
  isEniOffered(eni: NodeEniInfo): boolean;
};

/** An address, or that of an exclusive ENI, with its claim mark. */
type Target = { readonly ip: string; readonly claim?: NodeEniAddress['claim'] | undefined };

/** Plans of addresses that no Pod waits for. */
const OPEN: readonly AddressPlan[] = ['pooled', 'goes'];

/** Reads the agent's offers. An offer of an earlier assignment of the same address is void. */
export function offersOf(view: NodeView): Offers {
  const { spec, leaving, inUse, registered, ciliumIps } = view;
  const plans = planAddresses(view, view.status);
  const isHeld = ({ ip, claim }: Target): boolean => registered?.has(ip) === true && !movesWithPod(view, claim);
  const offered = new Map((spec.releasableIPs ?? []).map(({ ip, assignmentID }) => [ip, assignmentID]));
  const isOffered = (address: NodeEniAddress) =>
    address.state === 'Assigned' &&
    offered.get(address.ip) === address.assignmentID &&
    inUse?.has(address.ip) !== true &&
    ciliumIps !== 'unknown' &&
    ciliumIps?.has(address.ip) !== true &&
    !isHeld(address);
  const offeredEnis = new Map((spec.releasableENIs ?? []).map(({ eniID, assignmentID }) => [eniID, assignmentID]));
  const isReleased = (address: NodeEniAddress) => address.state === 'Releasing' || isOffered(address);
  const isFree = (address: NodeEniAddress) => {
    if (plans.isBusyElsewhere(address)) return false;
    switch (plans.of(address)) {
      case 'pooled':
        return isReleased(address);
      case 'goes':
        return isReleased(address) || plans.isTakenOver(address);
      case 'stays':
        // It stays on its ENI. On a node that is torn down it goes with the ENI, and is assigned again elsewhere by its
        // address.
        return leaving !== 'no' && isReleased(address);
      default:
        return false;
    }
  };
  const hasNeverServed = (eni: NodeEniInfo) => {
    // An ENI with a static address that a Pod waits for is not removed before it served, unless it may not serve at
    // all.
    const isOpen = eni.draining === true || (eni.addresses ?? []).every((one) => OPEN.includes(plans.of(one)));
    return eni.state === 'Attaching' && eni.assignmentID === undefined && isOpen;
  };
  return {
    isOffered,
    isHeld,
    isEniOffered: ({ eniID, assignmentID, state, primaryIP, claim }) => {
      const isThis = assignmentID !== undefined && offeredEnis.get(eniID) === assignmentID;
      const isFreeToGo = inUse?.has(primaryIP ?? '') !== true && !isHeld({ ip: primaryIP ?? '', claim });
      return isThis && state === 'Attached' && isFreeToGo;
    },
    isVacant: (eni) =>
      !(eni.addresses ?? []).some(isHeld) &&
      (leaving === 'force' || hasNeverServed(eni) || (eni.addresses ?? []).every(isFree)),
  };
}

/** Reports whether the address is for the same Pod elsewhere, or here: then it stays the same target. */
function movesWithPod({ claims }: NodeView, claim: NodeEniAddress['claim']): boolean {
  if (claim === undefined) return false;
  const goal = claims?.get(claimKeyOf(claim))?.goal;
  return goal === 'here' || goal === 'elsewhere';
}
