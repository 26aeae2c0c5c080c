import { EMPTY_STATE, type RuleState } from './desired.ts';
import { canonicalAddress, familyOf, hostPrefix } from './ip-prefix.ts';
import type { EniPodNetwork, NodeNetwork } from './network.ts';
import { PRIORITY, TABLE_MAIN } from './numbers.ts';
import { type PodPlan, planRoutedPod } from './plan-routed-pod.ts';

/**
 * Plans both sides of a Pod on a shared ENI. A side whose link does not exist yet (no ifindex) has neither links nor
 * routes.
 * @param podIfindex index of the Pod's interface in its own namespace, once it is known
 */
export function planSharedEniPod(node: NodeNetwork, pod: EniPodNetwork, podIfindex?: number): PodPlan {
  if (pod.kind === 'ipam') return { host: { ...EMPTY_STATE, rules: perPodRules(pod) }, pod: EMPTY_STATE };
  return planRoutedPod(node, pod, node.ruleMode === 'per-pod' ? perPodRules(pod) : [], podIfindex);
}

function perPodRules(pod: EniPodNetwork): readonly RuleState[] {
  return pod.ips.map(canonicalAddress).flatMap((ip): readonly RuleState[] => [
    { family: familyOf(ip), priority: PRIORITY.toPod, dst: hostPrefix(ip), table: TABLE_MAIN },
    { family: familyOf(ip), priority: PRIORITY.fromPod, src: hostPrefix(ip), table: pod.eniTable },
  ]);
}
