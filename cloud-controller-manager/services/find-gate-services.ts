import { DIRECT_ACCESS_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { decideService } from './decide-service.ts';
import { type DirectOwner, selectorOf } from './gate-source.ts';
import { readServiceHead } from './read-service.ts';
import { SERVED_ANNOTATIONS } from './served-annotations.ts';

/** Lists the Services of this program with direct access by their namespace. One with mode skip binds no Pod. */
export function findDirectServices(
  services: Iterable<KubeObject>,
  loadBalancerClass: string,
): ReadonlyMap<string, readonly DirectOwner[]> {
  const found = new Map<string, DirectOwner[]>();
  for (const object of services) {
    if (object.metadata.annotations?.[DIRECT_ACCESS_ANNOTATION] !== 'true') continue;
    const head = readServiceHead(object);
    const { key, namespace } = head;
    if (decideService(head, loadBalancerClass) !== 'serve') continue;
    if (head.annotations[SERVED_ANNOTATIONS.mode.name] === 'skip') continue;
    const its = found.get(namespace) ?? [];
    its.push({ kind: 'service', key, planKey: key, object, selectors: [selectorOf(object)] });
    found.set(namespace, its);
  }
  return found;
}
