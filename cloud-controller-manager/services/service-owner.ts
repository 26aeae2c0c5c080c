import { LOAD_BALANCER_ID_ANNOTATION } from '../../crd/foreign-names.ts';
import { SERVICE_FINALIZER } from '../../crd/names.ts';
import { SERVICES } from '../../kube/resource-types.ts';
import type { OwnerType } from '../balancers/write-owner.ts';
import { readServiceHead, type ServiceHead } from './read-service.ts';

/** Services as owners of load balancers. */
export const SERVICE_OWNER: OwnerType<ServiceHead> = {
  kind: 'service',
  resource: SERVICES,
  finalizer: SERVICE_FINALIZER,
  idAnnotation: LOAD_BALANCER_ID_ANNOTATION,
  headOf: readServiceHead,
  addressesOf: ({ ingress }) => ingress,
};
