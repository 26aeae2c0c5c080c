import { INGRESS_DIRECT_ACCESS_ANNOTATION, INGRESS_RULES_ANNOTATIONS } from '../crd/foreign-names.ts';
import type { KubeObject } from '../kube/kube-client.ts';
import { recordOf, recordsOf, textOf } from '../runtime/json.ts';

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
