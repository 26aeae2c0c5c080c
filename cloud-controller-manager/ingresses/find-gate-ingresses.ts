import type { KubeObject } from '../../kube/kube-client.ts';
import { type DirectOwner, selectorOf } from '../services/gate-source.ts';
import { backendServicesOf } from './backend-services.ts';
import { unitKeysOf } from './decide-membership.ts';
import { readIngressHead } from './read-ingress.ts';

/** Lists Ingresses with direct access by their namespace: each selects the Pods of its Services. */
export function findDirectIngresses(
  ingresses: Iterable<KubeObject>,
  services: { readonly get: (key: string) => KubeObject | undefined },
): ReadonlyMap<string, readonly DirectOwner[]> {
  const found = new Map<string, DirectOwner[]>();
  for (const object of ingresses) {
    const head = readIngressHead(object);
    const { key, namespace } = head;
    const selectors = backendServicesOf(object).flatMap((service) => {
      const its = services.get(service);
      return its === undefined ? [] : [selectorOf(its)];
    });
    const [planKey = key] = unitKeysOf(head);
    const all = found.get(namespace) ?? [];
    all.push({ kind: 'ingress', key, planKey, object, selectors });
    found.set(namespace, all);
  }
  return found;
}
