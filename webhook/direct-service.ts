import { isServedClass } from '../crd/load-balancer-class.ts';
import { DIRECT_ACCESS_ANNOTATION } from '../crd/names.ts';
import type { KubeObject } from '../kube/kube-client.ts';
import { isRecord } from '../runtime/decode.ts';

/** A Service that selects Pods. */
export type SelectingService = {
  readonly namespace: string;
  readonly name: string;
  /** Whether its Pods are the backends of its load balancer. */
  readonly isDirect: boolean;
  /** Labels that its Pods have, at least one. */
  readonly selector: ReadonlyMap<string, string>;
};

/**
 * Reads a Service; undefined when it selects nothing, or is being deleted: the condition of a new Pod would never be set.
 * Its Pods are no backends of its own load balancer with another type or class, or without direct access.
 * @param loadBalancerClass the class that the service controller serves beside Services without one; '' for none
 */
export function readSelectingService(object: KubeObject, loadBalancerClass: string): SelectingService | undefined {
  const { metadata, spec } = object;
  const { name, namespace, deletionTimestamp } = metadata;
  if (namespace === undefined || deletionTimestamp !== undefined || !isRecord(spec)) return undefined;
  const { loadBalancerClass: its, selector } = spec;
  const labels = isRecord(selector) ? Object.entries(selector) : [];
  // A Service without a selector has endpoints that another program makes.
  if (labels.length === 0) return undefined;
  const isAsked = spec['type'] === 'LoadBalancer' && metadata.annotations?.[DIRECT_ACCESS_ANNOTATION] === 'true';
  const isDirect = isAsked && isServedClass(typeof its === 'string' ? its : undefined, loadBalancerClass);
  return { namespace, name, isDirect, selector: new Map(labels.map(([key, value]) => [key, String(value)])) };
}

/** Tells whether a Service selects a Pod with these labels of its namespace. */
export function selects(
  { selector }: Pick<SelectingService, 'selector'>,
  labels: Readonly<Record<string, string>>,
): boolean {
  return selector.entries().every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
}
