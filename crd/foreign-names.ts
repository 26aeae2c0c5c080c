/** Annotation of a mirror Pod, the copy of a Pod of the kubelet's manifests: the uid of that Pod. No webhook sees the Pod itself. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Label of a Node: its zone. */
export const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** Label of a Node: the type of its instance. */
export const INSTANCE_TYPE_LABEL = 'node.kubernetes.io/instance-type';

/** TKE's annotation of a Service: the id of its load balancer. */
export const LOAD_BALANCER_ID_ANNOTATION = 'service.kubernetes.io/loadbalance-id';

/** TKE's annotation of an Ingress: `true` makes the Pods of its Services the backends, by their own addresses. */
export const INGRESS_DIRECT_ACCESS_ANNOTATION = 'ingress.cloud.tencent.com/direct-access';

/** TKE's annotations of an Ingress: rules on HTTP and on HTTPS beside its spec, as JSON. */
export const INGRESS_RULES_ANNOTATIONS = ['kubernetes.io/ingress.http-rules', 'kubernetes.io/ingress.https-rules'];

/** Tells by its labels whether a Node is a super node: it is no instance, and has neither ENIs nor node ports. */
export function isSuperNode(labels: Readonly<Record<string, unknown>>): boolean {
  return labels[INSTANCE_TYPE_LABEL] === 'eklet';
}
