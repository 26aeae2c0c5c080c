import { LOAD_BALANCER_ID_ANNOTATION } from '../../crd/foreign-names.ts';
import { annotationReader } from './annotation-table.ts';
import { writtenAnnotations } from './owner-annotations.ts';
import { REFUSED_ANNOTATIONS } from './refused-annotations.ts';
import { SERVED_ANNOTATIONS, type ServiceSettings, type SettingKey } from './served-annotations.ts';

/** Annotations of a Service that the controller writes. */
export const WRITTEN_ANNOTATIONS = writtenAnnotations('service', LOAD_BALANCER_ID_ANNOTATION);

const OF_TARGETS: readonly SettingKey[] = ['mode', 'directAccess', 'backendSelector', 'drainsLeaving', 'drainsUnready'];

/** Reads every annotation of a Service that is about its load balancer. What is not obeyed has a notice. */
export const readAnnotations = annotationReader<ServiceSettings>({
  kind: 'service',
  served: SERVED_ANNOTATIONS,
  refused: REFUSED_ANNOTATIONS.filter(({ place }) => place === 'Service'),
  others: WRITTEN_ANNOTATIONS.map(({ name }) => name),
  prefixes: [
    'service.cloud.tencent.com/',
    'service.kubernetes.io/qcloud-',
    'service.kubernetes.io/tke-',
    'service.kubernetes.io/loadbalance',
    'service.kubernetes.io/service.',
    'kubernetes.io/service.internet',
    'service.beta.kubernetes.io/load-balancer-source',
  ],
  ofTargets: OF_TARGETS,
});
