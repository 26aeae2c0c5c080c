import { annotationReader } from '../services/annotation-table.ts';
import { writtenAnnotations } from '../services/owner-annotations.ts';
import { INGRESS_CLASS_ANNOTATION } from './decide-ingress.ts';
import { REFUSED_ANNOTATIONS } from './refused-annotations.ts';
import { type IngressSettings, SERVED_ANNOTATIONS } from './served-annotations.ts';

/** The product's annotation of an Ingress: the id of its load balancer. */
export const INGRESS_LOAD_BALANCER_ANNOTATION = 'kubernetes.io/ingress.qcloud-loadbalance-id';

/** Annotations of an Ingress that the controller writes. */
export const WRITTEN_ANNOTATIONS = writtenAnnotations('ingress', INGRESS_LOAD_BALANCER_ANNOTATION);

/** What the rules and their targets depend on. */
const OF_TARGETS: readonly (keyof IngressSettings)[] = [
  ...(['mode', 'directAccess', 'drainsLeaving', 'drainsUnready', 'weights'] as const),
  ...(['ruleMix', 'ruleMixBoth', 'httpRules', 'httpsRules', 'listenPorts'] as const),
];

/** Reads every annotation of an Ingress that is about its load balancer. What is not obeyed has a notice. */
export const readAnnotations = annotationReader<IngressSettings>({
  kind: 'ingress',
  served: SERVED_ANNOTATIONS,
  refused: REFUSED_ANNOTATIONS,
  others: [...WRITTEN_ANNOTATIONS.map(({ name }) => name), INGRESS_CLASS_ANNOTATION],
  prefixes: ['ingress.cloud.tencent.com/', 'kubernetes.io/ingress.'],
  ofTargets: OF_TARGETS,
});
