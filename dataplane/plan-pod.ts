import type { NodeNetwork, PodNetwork } from './network.ts';
import { planBridgePod } from './plan-bridge-pod.ts';
import { planDirectPod } from './plan-direct-pod.ts';
import type { PodPlan } from './plan-routed-pod.ts';
import { planSharedEniPod } from './plan-shared-eni-pod.ts';

/**
 * Plans one Pod of any kind; of one with an exclusive ENI the host's side only.
 * @param podIfindex index of the Pod's interface in its own namespace, once it is known
 */
export function planPod(node: NodeNetwork, pod: PodNetwork, podIfindex?: number): PodPlan {
  switch (pod.kind) {
    case 'direct-eni':
      return planDirectPod(node, pod);
    case 'bridge':
      return planBridgePod(node, pod, podIfindex);
    case 'route-eni':
    case 'ipam':
      return planSharedEniPod(node, pod, podIfindex);
  }
}
