/** Annotation of a mirror Pod, the copy of a Pod of the kubelet's manifests: the uid of that Pod. No webhook sees the Pod itself. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Label of a Node: its zone. */
export const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** Label of a Node: the type of its instance. */
export const INSTANCE_TYPE_LABEL = 'node.kubernetes.io/instance-type';

/** TKE's annotation of a Service: the id of its load balancer. */
export const LOAD_BALANCER_ID_ANNOTATION = 'service.kubernetes.io/loadbalance-id';

/** Tells by its labels whether a Node is a super node: it is no instance, and has neither ENIs nor node ports. */
export function isSuperNode(labels: Readonly<Record<string, unknown>>): boolean {
  return labels[INSTANCE_TYPE_LABEL] === 'eklet';
}
