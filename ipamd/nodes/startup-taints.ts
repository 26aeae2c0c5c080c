import { DIRECT_ENI_RESOURCE, ENI_IP_RESOURCE } from '../../crd/names.ts';
import type { NodeEntry, NodeTaint } from '../cache/node-entry.ts';
import type { TaintSelector } from '../config/taint-selector.ts';

/** What a NodeENIConfig says of its node, as far as it decides about startup taints. */
export type ServedByAgent = {
  /** `spec.readyResources`; none without a NodeENIConfig. */
  readonly readyResources: readonly string[];
  /** The node is to serve exclusive ENIs. */
  readonly isDirectServed: boolean;
  /** Pods that name no network are on the node's bridge. */
  readonly isBridged: boolean;
};

type ServingNode = Pick<NodeEntry, 'isReady' | 'offeredResources' | 'podCidrs' | 'networkCondition' | 'isCiliumCrd'>;

/**
 * Tells whether a node can serve Pods now, so that its startup taints go. A NodeENIConfig alone does not prove it: it
 * outlives a Node that registers again, and then tells of the agent before. kubelet offers a resource only after an
 * agent has registered it with this kubelet; before that, an autoscaler would take the node for one where the Pod does
 * not fit. On the bridge no ENI is needed: the node has its podCIDR, and no route to it is missing. Where Cilium gives the
 * addresses kubelet offers nothing of them: what the agent says is all there is.
 */
export function canServePods(node: ServingNode, { readyResources, isDirectServed, isBridged }: ServedByAgent): boolean {
  if (!node.isReady) return false;
  if (isBridged) return node.podCidrs.length > 0 && node.networkCondition?.status !== 'True';
  if (node.isCiliumCrd === true) return readyResources.includes(ENI_IP_RESOURCE);
  const isServed = (name: string): boolean => readyResources.includes(name) && node.offeredResources.includes(name);
  return isServed(ENI_IP_RESOURCE) && (!isDirectServed || isServed(DIRECT_ENI_RESOURCE));
}

/** Returns the taints without the named ones, in their order; the same list when it has none of them. */
export function withoutStartupTaints(
  taints: readonly NodeTaint[],
  named: readonly TaintSelector[],
): readonly NodeTaint[] {
  const isNamed = (taint: NodeTaint): boolean => named.some((selector) => matches(selector, taint));
  return taints.some(isNamed) ? taints.filter((taint) => !isNamed(taint)) : taints;
}

function matches(selector: TaintSelector, { key, value = '', effect }: NodeTaint): boolean {
  if (selector.key !== key || (selector.effect ?? effect) !== effect) return false;
  return (selector.value ?? value) === value;
}
