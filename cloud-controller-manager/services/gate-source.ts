import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf } from '../../runtime/json.ts';
import type { BackendPod } from '../backends/backend-pod.ts';
import type { OwnerRef } from '../balancers/balancer-owner.ts';

/** A Service or an Ingress whose load balancer leads to Pods, and which Pods it selects. */
export type DirectOwner = OwnerRef & {
  readonly object: KubeObject;
  /** Of what was planned for it: that of its unit. */
  readonly planKey: string;
  /** Of its Services. One without entries selects nothing. */
  readonly selectors: readonly Readonly<Record<string, string>>[];
};

/** Where readiness gates find the owners of one kind. */
export type GateSource = {
  /** Whether it is known which owners there are. */
  readonly isReady: () => boolean;
  /** Those with direct access. */
  readonly owners: () => readonly DirectOwner[];
};

/** Reports whether an owner selects a Pod. A Service without a selector selects none: another client writes its endpoints. */
export function selectsPod({ selectors }: DirectOwner, { labels = {} }: Pick<BackendPod, 'labels'>): boolean {
  return selectors.some((selector) => {
    const wanted = Object.entries(selector);
    return wanted.length > 0 && wanted.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
  });
}

/** Reads the selector of a Service; accepts any shape. */
export function selectorOf({ spec }: KubeObject): Readonly<Record<string, string>> {
  const selector = recordOf(recordOf(spec)['selector']);
  return Object.fromEntries(Object.entries(selector).map(([key, value]) => [key, String(value)]));
}
