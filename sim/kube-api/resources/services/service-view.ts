import { isObject, type JsonObject, type KubeObject } from '../../object.ts';

/** The spec of a Service; an empty one when it has none. */
export function specOf(service: KubeObject): JsonObject {
  const { spec } = service;
  return isObject(spec) ? spec : {};
}

/** The ports of a Service that are objects. */
export function portsOf(spec: JsonObject): readonly JsonObject[] {
  const { ports } = spec as { readonly ports?: unknown };
  return Array.isArray(ports) ? ports.filter(isObject) : [];
}

/** Whether it has ports on every node. */
export function hasNodePorts({ type }: JsonObject): boolean {
  return type === 'NodePort' || type === 'LoadBalancer';
}

/** Whether nodes are asked on a port of their own if they have endpoints of it. */
export function hasHealthPort({ type, externalTrafficPolicy }: JsonObject): boolean {
  return type === 'LoadBalancer' && externalTrafficPolicy === 'Local';
}

/** Whether clients of other networks reach it. */
export function isExternal(spec: JsonObject): boolean {
  const { externalIPs } = spec as { readonly externalIPs?: unknown };
  return hasNodePorts(spec) || (spec['type'] === 'ClusterIP' && Array.isArray(externalIPs) && externalIPs.length > 0);
}
