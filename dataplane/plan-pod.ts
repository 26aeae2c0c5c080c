import { EMPTY_STATE } from './desired.ts';
import type { EniPodNetwork, NodeNetwork, PodNetwork } from './network.ts';
import { planBridgePod } from './plan-bridge-pod.ts';
import { planExclusivePod } from './plan-exclusive-pod.ts';
import { planLinklessRoutes, planPodRules } from './plan-pod-rules.ts';
import { type PodPlan, planRoutedPod } from './plan-routed-pod.ts';

/**
 * Plans one Pod of any kind; of one with an exclusive ENI the host's side only.
 * @param podIfindex index of the Pod's interface in its own namespace, once it is known
 */
export function planPod(node: NodeNetwork, pod: PodNetwork, podIfindex?: number): PodPlan {
  switch (pod.kind) {
    case 'direct-eni':
      return planExclusivePod(node, pod);
    case 'bridge':
      return planBridgePod(node, pod, podIfindex);
    case 'route-eni':
    case 'ipam':
      return planSharedEniPod(node, pod, podIfindex);
  }
}

/**
 * Plans both sides of a Pod on a shared ENI. A side whose link does not exist yet (no ifindex) has neither links nor
 * routes.
 * @param podIfindex index of the Pod's interface in its own namespace, once it is known
 */
export function planSharedEniPod(node: NodeNetwork, pod: EniPodNetwork, podIfindex?: number): PodPlan {
  const hasRules = pod.kind === 'ipam' ? pod.hasForeignRules !== true : node.ruleMode === 'per-pod';
  const rules = hasRules ? planPodRules(pod.ips, pod.eniTable) : [];
  if (pod.kind === 'ipam') return { host: { ...EMPTY_STATE, rules }, pod: EMPTY_STATE };
  return planRoutedPod(node, pod, { rules, routes: rules.length > 0 ? planLinklessRoutes(pod.ips) : [] }, podIfindex);
}
