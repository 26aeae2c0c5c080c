import { INGRESS_FINALIZER } from '../../crd/names.ts';
import { INGRESSES } from '../../kube/resource-types.ts';
import type { OwnerType } from '../balancers/write-owner.ts';
import { INGRESS_LOAD_BALANCER_ANNOTATION } from './read-annotations.ts';
import { type IngressHead, readIngressHead } from './read-ingress.ts';

/** Ingresses as owners of load balancers. */
export const INGRESS_OWNER: OwnerType<IngressHead> = {
  kind: 'ingress',
  resource: INGRESSES,
  finalizer: INGRESS_FINALIZER,
  idAnnotation: INGRESS_LOAD_BALANCER_ANNOTATION,
  headOf: readIngressHead,
  addressesOf: ({ addresses }) => addresses,
};
