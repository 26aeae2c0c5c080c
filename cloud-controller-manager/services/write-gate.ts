import { BACKEND_READY_GATE } from '../../crd/names.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { BackendPod } from '../backends/backend-pod.ts';
import type { GateDecision } from './decide-gate.ts';

/**
 * Writes the condition of the readiness gate of a Pod, if it is another one. Guarded by the uid: a Pod that is gone, or
 * another one of its name, is left alone.
 * @returns whether something was written. @throws KubeError
 */
export async function writeGate(
  { kube, clock }: { readonly kube: KubeClient; readonly clock: Clock },
  { namespace, name, uid, gate }: Pick<BackendPod, 'namespace' | 'name' | 'uid' | 'gate'>,
  { status, reason, message }: GateDecision,
  signal: AbortSignal,
): Promise<boolean> {
  if (gate?.status === status && gate.reason === reason && gate.message === message) return false;
  const changed = gate?.status === status ? {} : { lastTransitionTime: new Date(clock.nowMs()).toISOString() };
  const condition = { type: BACKEND_READY_GATE, status, reason, message, ...changed };
  const body = { metadata: { uid }, status: { conditions: [condition] } };
  try {
    await kube.patch(PODS, { namespace, name }, { kind: 'strategic', body, subresource: 'status' }, signal);
    return true;
  } catch (error) {
    if (!isKubeError(error, 'NOT_FOUND', 'CONFLICT')) throw error;
    return false;
  }
}
