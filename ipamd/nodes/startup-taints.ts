import { DIRECT_ENI_RESOURCE, ENI_IP_RESOURCE } from '../../crd/names.ts';
import { findMissingRights } from '../../kube/ask-rights.ts';
import type { InvolvedObject } from '../../kube/events/event-object.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NodeEntry, NodeTaint } from '../cache/node-entry.ts';
import type { NodeEvents } from '../calls/term.ts';
import type { TaintSelector } from '../config/taint-selector.ts';

/** What a NodeENIConfig says of its node, as far as it decides about startup taints. */
export type ServedByAgent = {
  /** `spec.readyResources`; none without a NodeENIConfig. */
  readonly readyResources: readonly string[];
  /** The node is to serve exclusive ENIs. */
  readonly isExclusiveServed: boolean;
  /** Pods that name no network are on the node's bridge. */
  readonly isBridged: boolean;
};

type ServingNode = Pick<NodeEntry, 'isReady' | 'offeredResources' | 'podCidrs' | 'networkCondition' | 'isCiliumCrd'>;

/**
 * Reports whether a node can serve Pods now, so that its startup taints go. A NodeENIConfig alone does not prove it: it
 * outlives a Node that registers again, and then tells of the agent before. kubelet offers a resource only after an
 * agent has registered it with this kubelet; before that, an autoscaler would take the node for one where the Pod does
 * not fit. On the bridge no ENI is needed: the node has its podCIDR, and no route to it is missing. Where Cilium gives the
 * addresses kubelet offers nothing of them: what the agent says is all there is.
 */
export function canServePods(
  node: ServingNode,
  { readyResources, isExclusiveServed, isBridged }: ServedByAgent,
): boolean {
  if (!node.isReady) return false;
  if (isBridged) return node.podCidrs.length > 0 && node.networkCondition?.status !== 'True';
  if (node.isCiliumCrd === true) return readyResources.includes(ENI_IP_RESOURCE);
  const isServed = (name: string): boolean => readyResources.includes(name) && node.offeredResources.includes(name);
  return isServed(ENI_IP_RESOURCE) && (!isExclusiveServed || isServed(DIRECT_ENI_RESOURCE));
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

type ReportDeps = {
  readonly kube: KubeClient;
  readonly log: Logger;
  readonly events: NodeEvents;
  /** The object on which people look for problems of ipamd's setup. */
  readonly involved: InvolvedObject;
};

/**
 * Says at the start which startup taints ipamd removes or, where it lacks the right to patch Nodes, that they stay: in the
 * log, and as an event. Asks the API server once; without an answer it says nothing. Without taints it does nothing.
 */
export async function reportStartupTaints(
  { kube, log, events, involved }: ReportDeps,
  startupTaints: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  if (startupTaints.length === 0) return;
  try {
    const missing = await findMissingRights(kube, [{ verb: 'patch', resource: 'nodes' }], signal);
    if (missing.length === 0)
      return log.info('startup taints are removed from nodes that can serve Pods', { taints: startupTaints });
    const message = `tke-eni-ipamd may not patch nodes: the taints of --startup-taints (${startupTaints.join(', ')}) stay on new nodes, and no Pod is placed there. Grant it to its ClusterRole; the agent has no right to change taints either`;
    log.error('startup taints stay on nodes', { detail: message });
    return events.record({ involved, type: 'Warning', reason: 'Forbidden', message });
  } catch (error) {
    if (!isKubeError(error) && !signal.aborted) throw error;
    log.debug('the right to patch nodes was not asked for', { error });
  }
}
