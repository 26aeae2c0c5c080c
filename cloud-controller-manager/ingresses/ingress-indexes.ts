import type { KubeObject } from '../../kube/kube-client.ts';
import { backendServicesOf } from './backend-services.ts';
import { unitKeysOf } from './decide-membership.ts';
import { readIngressHead } from './read-ingress.ts';

/** Names of the indexes of Ingresses. */
export const INGRESSES_BY = { service: 'service', unit: 'unit' } as const;

/** Indexes of the informer of Ingresses: by Service that one leads to, and by unit that one belongs to. */
export const INGRESS_INDEXES = {
  [INGRESSES_BY.service]: (object: KubeObject): readonly string[] => backendServicesOf(object),
  [INGRESSES_BY.unit]: (object: KubeObject): readonly string[] => unitKeysOf(readIngressHead(object)),
};
