import { POD_ANNOTATION } from '../../../crd/names.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { refOfKey } from '../../cache/pod-facts.ts';
import type { ClaimView } from './claim-view.ts';
import { isServed, selectAddress } from './decide-address.ts';

/**
 * Returns the value of the annotation that gives a Pod of a super node its address: JSON with the address, its subnet,
 * the claim and the Pod's uid, by which a reader tells it from that of another Pod of the name. Undefined while the
 * address is not reserved for this Pod alone: it is on an ENI, or the claim does not name the Pod yet.
 */
export function findAllocation(view: ClaimView): string | undefined {
  const { claim, pod, locations, calls } = view;
  if (pod === undefined || view.nodeOf(pod.nodeName).isSuper !== true || isServed(view, pod)) return undefined;
  const reservation = claim?.status?.reservation;
  const address = selectAddress(view);
  const isHeld = reservation?.state === 'Reserved' && reservation.ip !== undefined && reservation.ip === address?.ip;
  if (!isHeld || locations.length > 0 || calls.length > 0 || claim?.spec.podUID !== pod.uid) return undefined;
  return JSON.stringify({ ip: reservation.ip, subnetID: reservation.subnetID, claim: view.key, uid: pod.uid });
}

/**
 * Writes the annotation of a Pod, or removes one that is not of this Pod. It is a patch of the Pod with this uid only.
 * Returns whether something was to be written; the watch brings the changed Pod. Idempotent.
 * @throws KubeError when the API server does not answer
 */
export async function publishAllocation(kube: KubeClient, view: ClaimView, signal: AbortSignal): Promise<boolean> {
  const { pod, key } = view;
  const allocation = findAllocation(view);
  if (pod === undefined || pod.allocation === allocation) return false;
  const annotations = { [POD_ANNOTATION.vpcIpAllocation]: allocation ?? null };
  const body = { metadata: { uid: pod.apiUid ?? pod.uid, annotations } };
  try {
    await kube.patch(PODS, refOfKey(key), { kind: 'merge', body }, signal);
  } catch (error) {
    // Another Pod, or none: its event enqueues the claim again.
    if (!isKubeError(error, 'NOT_FOUND', 'CONFLICT', 'INVALID')) throw error;
  }
  return true;
}
