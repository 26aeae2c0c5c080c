import type { NodeEniAddress, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { type ClaimStanding, standingsOf } from './claim-standing.ts';
import type { NodeView } from './node-view.ts';

/** Tells which addresses the agent gives back. */
export type Offers = {
  /** Offered, with the id of this very assignment, and still assigned. */
  isOffered(address: NodeEniAddress): boolean;
  /** Nothing on the ENI is in use: each address is offered or on its way out, or nothing can be in use any more. */
  isVacant(eni: NodeEniInfo): boolean;
  /** An exclusive ENI that is offered, with the id of this very attachment, and that no live Pod has. */
  isEniOffered(eni: NodeEniInfo): boolean;
};

/** Nobody waits for such an address. */
const OPEN: readonly ClaimStanding[] = ['pooled', 'goes'];

/** Reads the agent's offers. An offer of an earlier assignment of the same address is void. Pure. */
export function offersOf(view: NodeView): Offers {
  const { spec, leaving, inUse } = view;
  const standings = standingsOf(view, view.status);
  const offered = new Map((spec.releasableIPs ?? []).map(({ ip, assignmentID }) => [ip, assignmentID]));
  const isOffered = ({ ip, assignmentID, state }: NodeEniAddress) =>
    state === 'Assigned' && offered.get(ip) === assignmentID && inUse?.has(ip) !== true;
  const offeredEnis = new Map((spec.releasableENIs ?? []).map(({ eniID, assignmentID }) => [eniID, assignmentID]));
  const isLetGo = (address: NodeEniAddress) => address.state === 'Releasing' || isOffered(address);
  const isFree = (address: NodeEniAddress) => {
    if (standings.isBusyElsewhere(address)) return false;
    switch (standings.of(address)) {
      case 'pooled':
        return isLetGo(address);
      case 'goes':
        return isLetGo(address) || standings.isTakenOver(address);
      case 'stays':
        // It is kept where it is; of a node that leaves it goes with the ENI, and comes again by its number.
        return leaving !== 'no' && isLetGo(address);
      default:
        return false;
    }
  };
  const hasNeverServed = (eni: NodeEniInfo) => {
    // What a kept address waits for is not given back before it served, but where it may not serve at all.
    const isOpen = eni.draining === true || (eni.addresses ?? []).every((one) => OPEN.includes(standings.of(one)));
    return eni.state === 'Attaching' && eni.assignmentID === undefined && isOpen;
  };
  return {
    isOffered,
    isEniOffered: ({ eniID, assignmentID, state, primaryIP }) => {
      const isThis = assignmentID !== undefined && offeredEnis.get(eniID) === assignmentID;
      return isThis && state === 'Attached' && inUse?.has(primaryIP ?? '') !== true;
    },
    isVacant: (eni) => leaving === 'force' || hasNeverServed(eni) || (eni.addresses ?? []).every(isFree),
  };
}
