import { isObject, type JsonObject, type KubeObject } from '../../object.ts';
import { type Cause, forbiddenValue, invalidValue, requiredValue, show, unsupportedValue } from '../causes.ts';
import { hasHealthPort, isExternal, portsOf, specOf } from './service-view.ts';

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const MOST_AFFINITY_SECONDS = 86_400;
const ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'";

/** Lists what is wrong with a Service, status apart. */
export function serviceFaults(service: KubeObject, old: KubeObject | undefined): readonly Cause[] {
  const spec = specOf(service);
  return [
    ...portFaults(spec),
    ...(TYPES.includes(String(spec['type'])) ? [] : [unsupportedValue('spec.type', spec['type'], TYPES)]),
    ...affinityFaults(spec),
    ...balancerFaults(spec),
    ...policyFaults(spec),
    ...(old === undefined ? [] : changeFaults(spec, specOf(old))),
  ];
}

/** Lists what is wrong with the status of a Service. */
export function statusFaults(service: KubeObject): readonly Cause[] {
  const { status } = service;
  const balancer = isObject(status) && isObject(status['loadBalancer']) ? status['loadBalancer'] : {};
  const { ingress } = balancer as { readonly ingress?: unknown };
  const entries = Array.isArray(ingress) ? ingress.filter(isObject) : [];
  const field = 'status.loadBalancer.ingress';
  if (entries.length > 0 && specOf(service)['type'] !== 'LoadBalancer') {
    return [forbiddenValue(field, "may only be used when `spec.type` is 'LoadBalancer'")];
  }
  return entries.flatMap((entry, index) =>
    entry['ipMode'] !== undefined && !entry['ip']
      ? [forbiddenValue(`${field}[${index}].ipMode`, 'may not be specified when `ip` is not set')]
      : [],
  );
}

function portFaults(spec: JsonObject): readonly Cause[] {
  const ports = portsOf(spec);
  const isBare = spec['clusterIP'] === 'None' || spec['type'] === 'ExternalName';
  if (ports.length === 0) return isBare ? [] : [requiredValue('spec.ports')];
  const names = new Set<unknown>();
  const pairs = new Set<string>();
  return ports.flatMap((port, index) => {
    const at = `spec.ports[${index}]`;
    const { name, port: number, protocol } = port as Readonly<Record<string, unknown>>;
    const isNamed = name !== undefined && name !== '';
    const isTwice = isNamed && names.has(name);
    const pair = `${String(protocol)}/${String(number)}`;
    const isPairTwice = pairs.has(pair);
    names.add(name);
    pairs.add(pair);
    const isPort = typeof number === 'number' && number >= 1 && number <= 65_535;
    return [
      ...(ports.length > 1 && !isNamed ? [requiredValue(`${at}.name`)] : []),
      ...(isTwice ? [duplicateValue(`${at}.name`, name)] : []),
      ...(isPort ? [] : [invalidValue(`${at}.port`, number, 'must be between 1 and 65535, inclusive')]),
      ...(['SCTP', 'TCP', 'UDP'].includes(String(protocol))
        ? []
        : [unsupportedValue(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP'])]),
      ...(isPairTwice ? [duplicateValue(at, { protocol, port: number })] : []),
      ...(spec['type'] === 'ClusterIP' && port['nodePort'] !== undefined
        ? [forbiddenValue(`${at}.nodePort`, "may not be used when `type` is 'ClusterIP'")]
        : []),
    ];
  });
}

function affinityFaults(spec: JsonObject): readonly Cause[] {
  const { sessionAffinityConfig: config } = spec as { readonly sessionAffinityConfig?: unknown };
  const client = isObject(config) && isObject(config['clientIP']) ? config['clientIP'] : undefined;
  const seconds = client?.['timeoutSeconds'];
  if (typeof seconds !== 'number' || (seconds > 0 && seconds <= MOST_AFFINITY_SECONDS)) return [];
  const rule = `must be greater than 0 and less than ${MOST_AFFINITY_SECONDS}`;
  return [invalidValue('spec.sessionAffinityConfig.clientIP.timeoutSeconds', seconds, rule)];
}

function balancerFaults(spec: JsonObject): readonly Cause[] {
  const { loadBalancerSourceRanges: ranges } = spec as { readonly loadBalancerSourceRanges?: unknown };
  const cidrs = Array.isArray(ranges) ? ranges.map(String) : [];
  const bad = cidrs.flatMap((cidr, index) =>
    /^[\d.]+\/\d+$|^[\da-f:.]+\/\d+$/i.test(cidr.trim())
      ? []
      : [invalidValue(`spec.LoadBalancerSourceRanges[${index}]`, cidr, 'must be a valid CIDR value')],
  );
  if (spec['type'] === 'LoadBalancer') return bad;
  return [
    ...bad,
    ...(cidrs.length > 0 ? [forbiddenValue('spec.LoadBalancerSourceRanges', ONLY_BALANCED)] : []),
    ...['allocateLoadBalancerNodePorts', 'loadBalancerClass']
      .filter((field) => (spec[field] ?? undefined) !== undefined)
      .map((field) => forbiddenValue(`spec.${field}`, ONLY_BALANCED)),
  ];
}

function policyFaults(spec: JsonObject): readonly Cause[] {
  const { externalTrafficPolicy: policy, healthCheckNodePort: port } = spec as Readonly<Record<string, unknown>>;
  const field = 'spec.externalTrafficPolicy';
  const isKnown = policy === 'Cluster' || policy === 'Local';
  return [
    ...(!isExternal(spec) && policy
      ? [invalidValue(field, policy, 'may only be set for externally-accessible services')]
      : []),
    ...(isExternal(spec) && !isKnown ? [unsupportedValue(field, policy, ['Cluster', 'Local'])] : []),
    ...(!hasHealthPort(spec) && port
      ? [
          invalidValue(
            'spec.healthCheckNodePort',
            port,
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
          ),
        ]
      : []),
  ];
}

function changeFaults(spec: JsonObject, before: JsonObject): readonly Cause[] {
  const isBoth = (has: (one: JsonObject) => boolean): boolean => has(spec) && has(before);
  const isChanged = (field: string): boolean => spec[field] !== before[field];
  const hasAddress = ({ type }: JsonObject): boolean => type !== 'ExternalName';
  return [
    ...(isBoth(hasAddress) && isChanged('clusterIP')
      ? [invalidValue('spec.clusterIPs[0]', [spec['clusterIP']], 'may not change once set')]
      : []),
    ...(isBoth(({ type }) => type === 'LoadBalancer') && isChanged('loadBalancerClass')
      ? [invalidValue('spec.loadBalancerClass', spec['loadBalancerClass'] ?? null, 'may not change once set')]
      : []),
    ...(isBoth(hasHealthPort) && isChanged('healthCheckNodePort')
      ? [forbiddenValue('spec.healthCheckNodePort', 'field is immutable')]
      : []),
  ];
}

function duplicateValue(field: string, value: unknown): Cause {
  return { field, reason: 'FieldValueDuplicate', message: `Duplicate value: ${show(value)}` };
}
