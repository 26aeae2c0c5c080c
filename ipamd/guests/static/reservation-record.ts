import type { VpcIpClaim } from '../../../crd/vpc-ip-claim.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { VPC_IP_CLAIMS } from '../../../kube/resource-types.ts';
import { isRecord } from '../../../runtime/decode.ts';
import { recordOf } from '../../../runtime/json.ts';
import { refOfKey } from '../../cache/pod-facts.ts';

/** The record of a reservation in a claim. Anybody with the right to edit claims may have changed it. */
export type ReservationRecord = NonNullable<NonNullable<VpcIpClaim['status']>['reservation']>;

/**
 * Changes the record in a claim, `namespace/name`, by a guarded write; no write when `change` returns its argument.
 * Returns the record after it; undefined when there is none, or no claim. @throws KubeError
 */
export async function changeReservation(
  kube: KubeClient,
  key: string,
  change: (before: ReservationRecord | undefined) => ReservationRecord | undefined,
  signal: AbortSignal,
): Promise<ReservationRecord | undefined> {
  const edit = (object: KubeObject): KubeObject | undefined => {
    const before = readReservation(object);
    const after = change(before);
    if (after === before) return undefined;
    const { reservation: _before, ...others } = recordOf(object['status']);
    return { ...object, status: { ...others, ...(after === undefined ? {} : { reservation: after }) } };
  };
  const written = await updateGuarded(kube, VPC_IP_CLAIMS, refOfKey(key), edit, { signal });
  return written === undefined ? undefined : readReservation(written);
}

function readReservation(object: KubeObject): ReservationRecord | undefined {
  const { reservation } = recordOf(object['status']);
  // Checked by the schema of the kind.
  return isRecord(reservation) ? (reservation as ReservationRecord) : undefined;
}
