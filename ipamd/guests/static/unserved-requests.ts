import { DIRECT_ENI_RESOURCE, ENI_IP_RESOURCE, POD_ANNOTATION, SUB_ENI_RESOURCE } from '../../../crd/names.ts';
import { involvedObject } from '../../../kube/involved-object.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { networkRequestOf, type PodFacts } from '../../cache/pod-facts.ts';
import type { Term } from '../../calls/term.ts';
import { IPAMD_EVENTS, type IpamdEventReason } from '../../events/event-reasons.ts';

/** A request of a Pod that nothing serves. */
type UnservedRequest = {
  readonly reason: Extract<IpamdEventReason, 'AnnotationInvalid' | 'NoAddressOnSuperNode' | 'ResourceNotServed'>;
  readonly message: string;
};

/** Finds what a Pod asks for and will not get, though each annotation is valid. */
export function findUnservedRequests(
  pod: Pick<PodFacts, 'annotations' | 'nodeName' | 'asksSubEni'>,
  isOnSuperNode: boolean,
): readonly UnservedRequest[] {
  const { mode, isStatic, nominatedIp } = networkRequestOf(pod).request;
  const unserved: UnservedRequest[] = pod.asksSubEni ? [SUB_ENI] : [];
  if (isStatic) return unserved;
  const kept = `\`${POD_ANNOTATION.deletePolicy}: Never\``;
  if (nominatedIp !== undefined)
    unserved.push({
      reason: 'AnnotationInvalid',
      message: `${POD_ANNOTATION.nominatedVpcIp} has no effect without ${kept}: this Pod gets any address, not ${nominatedIp}`,
    });
  if (isOnSuperNode && mode !== undefined)
    unserved.push({
      reason: 'NoAddressOnSuperNode',
      message: `super node ${pod.nodeName} has no ENIs: this Pod gets no address from ipamd, which reserves one there only for a Pod of tke-route-eni with ${kept}`,
    });
  return unserved;
}

const SUB_ENI: UnservedRequest = {
  reason: 'ResourceNotServed',
  message: `no node offers ${SUB_ENI_RESOURCE}, interfaces on trunk ENIs are not served: the Pod stays Pending; request ${ENI_IP_RESOURCE} or ${DIRECT_ENI_RESOURCE} instead`,
};

/** Records an event for each such request on its Pod, once for each Pod, until the result is called. */
export function reportUnservedRequests({ pods, nodes, events }: Pick<Term, 'pods' | 'nodes' | 'events'>): () => void {
  const reported = new Set<string>();
  const look = (pod: PodFacts): void => {
    if (reported.has(pod.uid) || pod.isLeaving || (pod.nodeName === '' && !pod.asksSubEni)) return;
    const unserved = findUnservedRequests(pod, nodes.get(pod.nodeName)?.isInstance === false);
    if (unserved.length === 0) return;
    reported.add(pod.uid);
    const involved = involvedObject(PODS, pod);
    for (const { reason, message } of unserved)
      events.record({ involved, type: IPAMD_EVENTS[reason].type, reason, message });
  };
  const stop = pods.subscribe(({ before, after }) => {
    if (before !== undefined && before.uid !== after?.uid) reported.delete(before.uid);
    if (after !== undefined) look(after);
  });
  for (const pod of pods.values()) look(pod);
  return stop;
}
