import { isServedClass } from '../crd/load-balancer-class.ts';
import { DIRECT_ACCESS_ANNOTATION } from '../crd/names.ts';
import type { KubeObject } from '../kube/kube-client.ts';
import { isRecord } from '../runtime/decode.ts';

/** A Service whose Pods are the backends of its load balancer. */
export type DirectService = {
  readonly namespace: string;
  /** Labels that its Pods have, at least one. */
  readonly selector: ReadonlyMap<string, string>;
};

/**
 * Reads a Service; undefined when its Pods are no backends: another type or class, no direct access, no selector. A
 * Service that is being deleted has none either: the condition of a new Pod would never be set.
 * @param loadBalancerClass the class that the service controller serves beside Services without one; '' for none
 */
export function readDirectService(object: KubeObject, loadBalancerClass: string): DirectService | undefined {
  const { metadata, spec } = object;
  const { namespace, deletionTimestamp } = metadata;
  if (namespace === undefined || deletionTimestamp !== undefined || !isRecord(spec)) return undefined;
  if (spec['type'] !== 'LoadBalancer' || metadata.annotations?.[DIRECT_ACCESS_ANNOTATION] !== 'true') return undefined;
  const { loadBalancerClass: its, selector } = spec;
  if (!isServedClass(typeof its === 'string' ? its : undefined, loadBalancerClass)) return undefined;
  const labels = isRecord(selector) ? Object.entries(selector) : [];
  // A Service without a selector has endpoints that another program makes.
  if (labels.length === 0) return undefined;
  return { namespace, selector: new Map(labels.map(([name, value]) => [name, String(value)])) };
}

/** Tells whether a Service selects a Pod with these labels of its namespace. */
export function selects({ selector }: DirectService, labels: Readonly<Record<string, string>>): boolean {
  return [...selector].every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
}
