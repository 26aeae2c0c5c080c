import { findMissingRights } from '../../kube/ask-rights.ts';
import type { InvolvedObject } from '../../kube/events/event-object.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NodeEvents } from '../calls/term.ts';

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
