import type { KubeObject } from '../../kube/kube-client.ts';
import { readOwnerMark } from '../balancers/owner-mark.ts';
import { readAnnotations } from './read-annotations.ts';
import { readIngressHead } from './read-ingress.ts';

/** Reports whether an Ingress has a load balancer, which may have targets. */
export function hasBalancer(object: KubeObject): boolean {
  const head = readIngressHead(object);
  return head.hasFinalizer && readOwnerMark(head).loadBalancerId !== undefined;
}

/** Reports whether an Ingress asks for its Pods as backends. */
export function isDirect({ metadata: { annotations = {} } }: KubeObject): boolean {
  return readAnnotations(annotations).settings.directAccess === true;
}

/** Reports whether nothing of the load balancer of an Ingress is to be changed. */
export function isSkipped({ metadata: { annotations = {} } }: KubeObject): boolean {
  return readAnnotations(annotations).settings.mode === 'skip';
}
