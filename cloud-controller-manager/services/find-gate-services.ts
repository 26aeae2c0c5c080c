import { DIRECT_ACCESS_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf } from '../../runtime/json.ts';
import type { BackendPod } from './backend-pod.ts';
import { decideService } from './decide-service.ts';
import { readServiceHead } from './read-service.ts';
import { SERVED_ANNOTATIONS } from './served-annotations.ts';

/** A Service whose load balancer leads to Pods, and which Pods it selects. */
export type DirectService = {
  readonly object: KubeObject;
  readonly key: string;
  readonly selector: Readonly<Record<string, string>>;
};

/** Lists the Services of this program with direct access by their namespace. One with mode skip binds no Pod. */
export function findDirectServices(
  services: Iterable<KubeObject>,
  loadBalancerClass: string,
): ReadonlyMap<string, readonly DirectService[]> {
  const found = new Map<string, DirectService[]>();
  for (const object of services) {
    if (object.metadata.annotations?.[DIRECT_ACCESS_ANNOTATION] !== 'true') continue;
    const head = readServiceHead(object);
    if (decideService(head, loadBalancerClass) !== 'serve') continue;
    if (head.annotations[SERVED_ANNOTATIONS.mode.name] === 'skip') continue;
    const its = found.get(head.namespace) ?? [];
    its.push({ object, key: head.key, selector: selectorOf(object) });
    found.set(head.namespace, its);
  }
  return found;
}

/** Tells whether a Service selects a Pod. One without a selector selects none: another client writes its endpoints. */
export function selectsPod({ selector }: DirectService, { labels = {} }: Pick<BackendPod, 'labels'>): boolean {
  const wanted = Object.entries(selector);
  return wanted.length > 0 && wanted.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

function selectorOf({ spec }: KubeObject): Readonly<Record<string, string>> {
  const selector = recordOf(recordOf(spec)['selector']);
  return Object.fromEntries(Object.entries(selector).map(([key, value]) => [key, String(value)]));
}
