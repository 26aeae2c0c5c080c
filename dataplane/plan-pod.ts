import type { NodeNetwork, PodNetwork } from './network.ts';
import { planDirectPod } from './plan-direct-pod.ts';
import { type PodPlan, planSharedEniPod } from './plan-shared-eni-pod.ts';

/** Plans the host's side of one Pod of any kind. */
export function planPod(node: NodeNetwork, pod: PodNetwork): PodPlan {
  return pod.kind === 'direct-eni' ? planDirectPod(node, pod) : planSharedEniPod(node, pod);
}
