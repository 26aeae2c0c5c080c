import { INGRESS_DIRECT_ACCESS_ANNOTATION, INGRESS_RULES_ANNOTATIONS } from '../crd/foreign-names.ts';
import { isServedClass } from '../crd/load-balancer-class.ts';
import { DIRECT_ACCESS_ANNOTATION } from '../crd/names.ts';
import type { KubeObject } from '../kube/kube-client.ts';
import { isRecord } from '../runtime/decode.ts';
import { recordOf, recordsOf, textOf } from '../runtime/json.ts';

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

/** Reports whether a Service selects a Pod with these labels of its namespace. */
export function selects(
  { selector }: Pick<SelectingService, 'selector'>,
  labels: Readonly<Record<string, string>>,
): boolean {
  return selector.entries().every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
}

/** An Ingress that leads to the Pods of Services. */
export type DirectIngress = {
  readonly namespace: string;
  /** Names of Services of its namespace. */
  readonly services: ReadonlySet<string>;
};

/** Rules in an annotation that is longer are not read; the controller does not read them either. */
const MAX_CHARS = 65_536;

/**
 * Reads an Ingress of any class; undefined when it asks for no direct access, or is being deleted. Accepts any shape. A Pod that
 * has a gate for an Ingress which is not served does not wait: the controller sets its condition.
 */
export function readDirectIngress({ metadata, spec }: KubeObject): DirectIngress | undefined {
  const { namespace, annotations = {}, deletionTimestamp } = metadata;
  if (namespace === undefined || deletionTimestamp !== undefined) return undefined;
  if (annotations[INGRESS_DIRECT_ACCESS_ANNOTATION] !== 'true') return undefined;
  const { defaultBackend, rules } = recordOf(spec);
  const paths = recordsOf(rules).flatMap(({ http }) => recordsOf(recordOf(http)['paths']));
  const backends = [defaultBackend, ...paths.map(({ backend }) => backend)];
  const ofSpec = backends.map((backend) => textOf(recordOf(recordOf(backend)['service'])['name']));
  const ofAnnotations = INGRESS_RULES_ANNOTATIONS.flatMap((name) => servicesOf(annotations[name] ?? ''));
  const services = new Set([...ofSpec, ...ofAnnotations].filter((name) => name !== ''));
  return services.size === 0 ? undefined : { namespace, services };
}

function servicesOf(json: string): readonly string[] {
  if (json === '' || json.length > MAX_CHARS) return [];
  try {
    return recordsOf(JSON.parse(json)).map(({ backend }) => textOf(recordOf(backend)['serviceName']));
  } catch {
    return [];
  }
}
