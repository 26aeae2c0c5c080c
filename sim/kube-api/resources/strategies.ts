import { isEqual, isObject, type JsonObject, type KubeObject, withMetadata } from '../object.ts';
import type { Strategy } from './api-resource.ts';
import { type Cause, forbiddenValue, invalidValue, requiredValue } from './causes.ts';

/** What the API server does with Nodes: the podCIDR may be given once. */
export const NODE_STRATEGY: Strategy = {
  prepareCreate: (node) => ({ ...node, spec: withPodCidrs(fieldOf(node, 'spec')), status: fieldOf(node, 'status') }),
  prepareUpdate: (node) => ({ ...node, spec: withPodCidrs(fieldOf(node, 'spec')) }),
  validate: (node, old) => {
    const before = old === undefined ? undefined : fieldOf(old, 'spec')['podCIDR'];
    const isChanged = before !== undefined && fieldOf(node, 'spec')['podCIDR'] !== before;
    const message = 'node updates may not change podCIDR except from "" to valid';
    return isChanged ? [forbiddenValue('spec.podCIDRs', message)] : [];
  },
};

function withPodCidrs(spec: JsonObject): JsonObject {
  const { podCIDR, podCIDRs } = spec as { podCIDR?: unknown; podCIDRs?: unknown };
  if (typeof podCIDR === 'string' && podCIDRs === undefined) return { ...spec, podCIDRs: [podCIDR] };
  if (podCIDR === undefined && Array.isArray(podCIDRs)) return { ...spec, podCIDR: podCIDRs[0] };
  return spec;
}

function fieldOf(object: KubeObject, field: string): JsonObject {
  const value = object[field];
  return isObject(value) ? value : {};
}

/** What the API server does with Namespaces: a label with the name, and a finalizer that keeps them until they are empty. */
export const NAMESPACE_STRATEGY: Strategy = {
  prepareCreate: (namespace) => ({
    ...withMetadata(namespace, {
      labels: { ...namespace.metadata.labels, 'kubernetes.io/metadata.name': namespace.metadata.name },
    }),
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }),
};

/** What the API server does with Secrets: texts become data, the type stays, and one of TLS has its two keys. */
export const SECRET_STRATEGY: Strategy = {
  prepareCreate: withTexts,
  prepareUpdate: withTexts,
  validate: (secret, old) => {
    const data = fieldOf(secret, 'data');
    const keys = secret['type'] === 'kubernetes.io/tls' ? ['tls.crt', 'tls.key'] : [];
    const isChanged = old !== undefined && old['type'] !== secret['type'];
    return [
      ...dataKeyFaults(secret),
      ...keys.filter((key) => data[key] === undefined).map((key) => requiredValue(`data[${key}]`)),
      ...(isChanged ? [invalidValue('type', secret['type'], 'field is immutable')] : []),
    ];
  },
};

function withTexts(secret: KubeObject): KubeObject {
  const text = fieldOf(secret, 'stringData');
  const encoded = Object.entries(text).map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')]);
  const { stringData: _, ...rest } = secret;
  const data = { ...fieldOf(secret, 'data'), ...Object.fromEntries(encoded) };
  return { ...rest, type: secret['type'] ?? 'Opaque', ...(Object.keys(data).length > 0 ? { data } : {}) };
}

/** Status is the controllers': a client that creates an object cannot say it. */
export const WORKLOAD_STRATEGY: Strategy = {
  prepareCreate: (object) => ({ ...object, status: {} }),
};

/** Checks that an Event is of the namespace of its object. */
export const EVENT_STRATEGY: Strategy = {
  prepareCreate: (event) => ({
    source: {},
    firstTimestamp: null,
    lastTimestamp: null,
    eventTime: null,
    reportingComponent: '',
    reportingInstance: '',
    ...event,
  }),
  validate: (event, old) => {
    if (old !== undefined) return [];
    const about = fieldOf(event, 'involvedObject');
    const namespace = about['namespace'] ?? 'default';
    return namespace === event.metadata.namespace
      ? []
      : [invalidValue('involvedObject.namespace', about['namespace'] ?? '', 'does not match event.namespace')];
  },
};

/** Checks what a Lease must say. */
export const LEASE_STRATEGY: Strategy = {
  validate: (lease) => {
    const { leaseDurationSeconds, leaseTransitions } = fieldOf(lease, 'spec') as Record<string, unknown>;
    return [
      ...(typeof leaseDurationSeconds === 'number' && leaseDurationSeconds <= 0
        ? [invalidValue('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0')]
        : []),
      ...(typeof leaseTransitions === 'number' && leaseTransitions < 0
        ? [invalidValue('spec.leaseTransitions', leaseTransitions, 'must be greater than or equal to 0')]
        : []),
    ];
  },
};

/** A binding's role never changes: the binding is made again. */
export const ROLE_BINDING_STRATEGY: Strategy = {
  validate: (binding, old) => {
    const { roleRef } = binding as { roleRef?: unknown };
    if (!isObject(roleRef)) return [requiredValue('roleRef')];
    const isChanged = old !== undefined && !isEqual(old['roleRef'], roleRef);
    return isChanged ? [invalidValue('roleRef', roleRef, 'cannot change roleRef')] : [];
  },
};

/** A ConfigMap that says so cannot change. */
export const CONFIG_MAP_STRATEGY: Strategy = {
  validate: (map, old) => {
    const badKeys = dataKeyFaults(map);
    if (badKeys.length > 0 || old?.['immutable'] !== true) return badKeys;
    const isChanged = !isEqual(map['data'], old['data']) || map['immutable'] !== true;
    return isChanged ? [forbiddenValue('data', 'field is immutable when `immutable` is set')] : [];
  },
};

const KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

function dataKeyFaults(object: KubeObject): readonly Cause[] {
  return Object.keys(fieldOf(object, 'data'))
    .filter((key) => !/^[-._a-zA-Z0-9]+$/.test(key))
    .map((key) => invalidValue(`data[${key}]`, key, KEY_RULE));
}
