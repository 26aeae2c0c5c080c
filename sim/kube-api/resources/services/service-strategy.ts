import { isEqual, isObject, type JsonObject, type KubeObject, without } from '../../object.ts';
import type { Strategy } from '../api-resource.ts';
import { allocate } from './service-allocation.ts';
import { serviceFaults, statusFaults } from './service-faults.ts';
import { hasHealthPort, hasNodePorts, isExternal, portsOf, specOf } from './service-view.ts';

const AFFINITY_SECONDS = 10_800;

/**
 * What the API server does with Services: defaults, addresses and ports that it allocates and that stay, fields that go with
 * a type, and a status that the status path alone changes and that goes with the type LoadBalancer.
 */
export const SERVICE_STRATEGY: Strategy = {
  prepareCreate: (service) => ({ ...service, spec: withDefaults(specOf(service)), status: { loadBalancer: {} } }),
  prepareUpdate: (service, old) => {
    const before = specOf(old);
    const spec = dropUnfit(keepAllocated(withDefaults(specOf(service)), before), before);
    return { ...service, spec, ...(spec['type'] === 'LoadBalancer' ? {} : { status: withoutBalancer(service) }) };
  },
  prepareStatus: (service) => ({ ...service, status: withIpModes(service) }),
  allocate,
  validate: serviceFaults,
  validateStatus: statusFaults,
};

function withDefaults(given: JsonObject): JsonObject {
  const type = given['type'] || 'ClusterIP';
  const affinity = given['sessionAffinity'] || 'None';
  const spec: JsonObject = { ...given, type, sessionAffinity: affinity };
  const { ports } = given as { readonly ports?: unknown };
  return {
    ...(affinity === 'ClientIP' ? withAffinityTime(spec) : without(spec, 'sessionAffinityConfig')),
    ...(Array.isArray(ports) ? { ports: ports.map(withPortDefaults) } : {}),
    ...(isExternal(spec) && !given['externalTrafficPolicy'] ? { externalTrafficPolicy: 'Cluster' } : {}),
    ...(type !== 'ExternalName' && !given['internalTrafficPolicy'] ? { internalTrafficPolicy: 'Cluster' } : {}),
    ...(type === 'LoadBalancer' && (given['allocateLoadBalancerNodePorts'] ?? undefined) === undefined
      ? { allocateLoadBalancerNodePorts: true }
      : {}),
  };
}

function withAffinityTime(spec: JsonObject): JsonObject {
  const { sessionAffinityConfig: config } = spec as { readonly sessionAffinityConfig?: unknown };
  const client = isObject(config) && isObject(config['clientIP']) ? config['clientIP'] : {};
  const clientIP = { timeoutSeconds: AFFINITY_SECONDS, ...client };
  return { ...spec, sessionAffinityConfig: { clientIP } };
}

function withPortDefaults(port: unknown): unknown {
  if (!isObject(port)) return port;
  const targetPort = port['targetPort'] || port['port'];
  // A node port of 0 is none.
  const { nodePort } = port as { readonly nodePort?: unknown };
  return { ...(nodePort === 0 ? without(port, 'nodePort') : port), protocol: port['protocol'] || 'TCP', targetPort };
}

/** What was allocated stays where the update does not say otherwise: addresses, node ports by name, the health port. */
function keepAllocated(spec: JsonObject, before: JsonObject): JsonObject {
  const isBoth = (has: (one: JsonObject) => boolean): boolean => has(spec) && has(before);
  const addresses = ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'].filter(
    (field) => (spec[field] ?? '') === '' && before[field] !== undefined,
  );
  return {
    ...spec,
    ...(isBoth(({ type }) => type !== 'ExternalName')
      ? Object.fromEntries(addresses.map((field) => [field, before[field]]))
      : {}),
    ...(isBoth(hasNodePorts) ? { ports: keepNodePorts(spec, before) } : {}),
    ...(isBoth(hasHealthPort) && !spec['healthCheckNodePort']
      ? { healthCheckNodePort: before['healthCheckNodePort'] }
      : {}),
  };
}

function keepNodePorts(spec: JsonObject, before: JsonObject): readonly JsonObject[] {
  const named = new Set(portsOf(spec).map((port) => port['nodePort']));
  const known = new Map(portsOf(before).map((port) => [port['name'] ?? '', port['nodePort']]));
  return portsOf(spec).map((port) => {
    const nodePort = known.get(port['name'] ?? '');
    return port['nodePort'] !== undefined || nodePort === undefined || named.has(nodePort)
      ? port
      : { ...port, nodePort };
  });
}

/** A field that does not fit the new type goes, unless the update changed it: then it is refused. */
function dropUnfit(spec: JsonObject, before: JsonObject): JsonObject {
  const isSame = (field: string): boolean => isEqual(spec[field], before[field]);
  const isLost = (has: (one: JsonObject) => boolean): boolean => has(before) && !has(spec);
  const isBalanced = ({ type }: JsonObject): boolean => type === 'LoadBalancer';
  const nodePortsOf = (one: JsonObject): readonly unknown[] => portsOf(one).flatMap((port) => port['nodePort'] ?? []);
  const dropped = [
    ...(isLost(hasHealthPort) ? ['healthCheckNodePort'] : []),
    ...(isLost(isBalanced) ? ['allocateLoadBalancerNodePorts', 'loadBalancerClass'] : []),
    ...(isLost(isExternal) ? ['externalTrafficPolicy'] : []),
    ...(isLost(({ type }) => type !== 'ExternalName')
      ? ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy']
      : []),
  ].filter(isSame);
  const losesPorts = isLost(hasNodePorts) && isEqual(nodePortsOf(spec), nodePortsOf(before));
  const ports = losesPorts ? { ports: portsOf(spec).map((port) => without(port, 'nodePort')) } : {};
  return { ...without(spec, ...dropped), ...ports };
}

function withoutBalancer(service: KubeObject): JsonObject {
  const { status } = service;
  return { ...(isObject(status) ? status : {}), loadBalancer: {} };
}

function withIpModes(service: KubeObject): unknown {
  const { status } = service;
  const balancer = isObject(status) && isObject(status['loadBalancer']) ? status['loadBalancer'] : {};
  const { ingress } = balancer as { readonly ingress?: unknown };
  if (!isObject(status) || specOf(service)['type'] !== 'LoadBalancer' || !Array.isArray(ingress)) return status;
  const entries = ingress.map((one: unknown) => (isObject(one) && one['ip'] ? { ipMode: 'VIP', ...one } : one));
  return { ...status, loadBalancer: { ...balancer, ingress: entries } };
}
