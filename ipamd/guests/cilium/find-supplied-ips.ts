import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from '../../decide/claim-marks.ts';
import type { AddressPlans } from '../../decide/plan-addresses.ts';
import { isShared } from '../../decide/with-enis.ts';

/** A Pod address of a shared ENI, as the node's NodeENIConfig has it. */
export type SuppliedIp = {
  readonly ip: string;
  readonly eniId: string;
  readonly assignmentId: string;
  /** It may serve Pods. False: it is being taken off its ENI, or its ENI is not attached. */
  readonly isAssigned: boolean;
  /** Its ENI is to be emptied. */
  readonly isDraining: boolean;
  /** The only Pod that may get it, `NAMESPACE/NAME`: the address is static. */
  readonly owner?: string;
  /** A static address that is to leave the node. */
  readonly isLeaving: boolean;
};

/** Lists the Pod addresses of a node's shared ENIs, without the ENIs' own. */
export function findSuppliedIps({ eniInfos = [] }: NodeEniConfigStatus, plans: AddressPlans): readonly SuppliedIp[] {
  return eniInfos.filter(isShared).flatMap(({ eniID, state, draining, addresses = [] }) =>
    addresses.map((address) => {
      const { ip, assignmentID, claim } = address;
      const plan = plans.of(address);
      return {
        ip,
        eniId: eniID,
        assignmentId: assignmentID,
        isAssigned: state === 'Attached' && address.state === 'Assigned',
        isDraining: draining === true,
        ...(claim === undefined ? {} : { owner: claimKeyOf(claim) }),
        isLeaving: plan === 'goes' || plan === 'handed',
      };
    }),
  );
}
