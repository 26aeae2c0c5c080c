import { SERVICE_FINALIZER } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import {
  boolean,
  type Decoder,
  decodeOrThrow,
  integer,
  isRecord,
  list,
  oneOf,
  optional,
  record,
  required,
  text,
} from '../../runtime/decode.ts';
import { recordOf } from '../../runtime/json.ts';
import { limitText } from '../../runtime/limit-text.ts';
import type { BackendPort } from '../backends/backend-port.ts';
import type { BalancerOwner, StatusAddress } from '../balancers/balancer-owner.ts';
import { refuseTooLarge } from '../balancers/owner-bounds.ts';

/** What decides whether a Service has a load balancer of ours. It is read of any object, whatever else is wrong with it. */
export type ServiceHead = BalancerOwner & {
  readonly kind: 'service';
  readonly type: string;
  /** Absent: the default one. */
  readonly loadBalancerClass?: string;
  readonly isLeaving: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** `status.loadBalancer.ingress`; what has neither address nor name is left out. */
  readonly ingress: readonly StatusAddress[];
};

/** The spec of a Service of type LoadBalancer, as far as its load balancer depends on it. */
export type ServiceSpec = {
  readonly ports: readonly BackendPort[];
  readonly externalTrafficPolicy: 'Cluster' | 'Local';
  /** Absent, unless the policy is Local. */
  readonly healthCheckNodePort?: number;
  readonly allocatesNodePorts: boolean;
  readonly ipFamilies: readonly ('IPv4' | 'IPv6')[];
  /** The address that is asked for. */
  readonly loadBalancerIp?: string;
  /** Networks of clients; none: all. */
  readonly sourceRanges: readonly string[];
  /** Seconds for which a client keeps its backend; absent: no affinity. */
  readonly affinitySeconds?: number;
};

/** Upstream's default of `sessionAffinityConfig.clientIP.timeoutSeconds`. */
const AFFINITY_SECONDS = 10_800;
const MAX_AFFINITY_SECONDS = 86_400;
const MAX_PORT = 65_535;
/** A listener for each; the cloud has a quota of 50 for one load balancer. */
const MAX_PORTS = 1_000;
const MAX_RANGES = 1_000;
/** Characters of a namespace, a slash and a name, as the API server takes them. */
const MAX_KEY = 63 + 1 + 253;

/** Reads the head of a Service; accepts any shape. */
export function readServiceHead(object: KubeObject): ServiceHead {
  const { name, namespace = '', uid = '', resourceVersion = '', finalizers = [] } = object.metadata;
  const { labels = {}, annotations = {}, deletionTimestamp } = object.metadata;
  const spec = recordOf(object['spec']);
  const { loadBalancerClass } = spec;
  return {
    kind: 'service',
    key: `${namespace}/${name}`,
    namespace,
    name,
    uid,
    resourceVersion,
    type: typeof spec['type'] === 'string' ? spec['type'] : 'ClusterIP',
    ...(typeof loadBalancerClass === 'string' ? { loadBalancerClass } : {}),
    isLeaving: deletionTimestamp !== undefined,
    hasFinalizer: finalizers.includes(SERVICE_FINALIZER),
    labels,
    annotations,
    ingress: ingressOf(recordOf(recordOf(object['status'])['loadBalancer'])['ingress']),
  };
}

/** Reads the spec of a Service of type LoadBalancer. @throws ConfigError that names each bad field */
export function readServiceSpec(object: KubeObject): ServiceSpec {
  const { name, namespace = '' } = object.metadata;
  const key = limitText(`${namespace}/${name}`, MAX_KEY);
  refuseTooLarge(object, `the Service ${key}`);
  const wire = decodeOrThrow(SPEC, object['spec'], `spec of the Service ${key}`);
  const families = wire.ipFamilies ?? [];
  return {
    ports: wire.ports.map(({ name: portName = '', protocol = 'TCP', port, nodePort = 0 }) => ({
      name: portName,
      protocol,
      port,
      ...(nodePort === 0 ? {} : { nodePort }),
    })),
    externalTrafficPolicy: wire.externalTrafficPolicy ?? 'Cluster',
    ...(wire.healthCheckNodePort ? { healthCheckNodePort: wire.healthCheckNodePort } : {}),
    allocatesNodePorts: wire.allocateLoadBalancerNodePorts ?? true,
    ipFamilies: families.length === 0 ? ['IPv4'] : families,
    ...(wire.loadBalancerIP ? { loadBalancerIp: wire.loadBalancerIP } : {}),
    sourceRanges: wire.loadBalancerSourceRanges ?? [],
    ...(wire.sessionAffinity === 'ClientIP'
      ? { affinitySeconds: wire.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? AFFINITY_SECONDS }
      : {}),
  };
}

const PORT = record(
  {
    name: optional(text()),
    protocol: optional(oneOf(['TCP', 'UDP', 'SCTP'])),
    port: required(integer(1, MAX_PORT)),
    nodePort: optional(integer(0, MAX_PORT)),
  },
  'ignore',
);

const SPEC = record(
  {
    ports: required(distinctPorts(atMost(MAX_PORTS, list(PORT)))),
    externalTrafficPolicy: optional(oneOf(['Cluster', 'Local'])),
    healthCheckNodePort: optional(integer(0, MAX_PORT)),
    allocateLoadBalancerNodePorts: optional(boolean),
    ipFamilies: optional(list(oneOf(['IPv4', 'IPv6']))),
    loadBalancerIP: optional(text()),
    loadBalancerSourceRanges: optional(atMost(MAX_RANGES, list(text()))),
    sessionAffinity: optional(oneOf(['None', 'ClientIP'])),
    sessionAffinityConfig: optional(
      record(
        {
          clientIP: optional(record({ timeoutSeconds: optional(integer(1, MAX_AFFINITY_SECONDS)) }, 'ignore')),
        },
        'ignore',
      ),
    ),
  },
  'ignore',
);

function atMost<T>(most: number, items: Decoder<readonly T[]>): Decoder<readonly T[]> {
  return (value, path, faults) => {
    if (!Array.isArray(value) || value.length <= most) return items(value, path, faults);
    faults.add(path, `at most ${most} entries`, value.length);
    return undefined;
  };
}

/** A load balancer has one listener for a protocol and port. */
function distinctPorts<T extends { readonly port: number; readonly protocol?: string }>(
  ports: Decoder<readonly T[]>,
): Decoder<readonly T[]> {
  return (value, path, faults) => {
    const decoded = ports(value, path, faults);
    const seen = new Set<string>();
    for (const { port, protocol = 'TCP' } of decoded ?? []) {
      const id = `${protocol} ${port}`;
      if (seen.has(id)) faults.add(path, 'each protocol and port once', id);
      seen.add(id);
    }
    return decoded;
  };
}

function ingressOf(value: unknown): readonly StatusAddress[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).flatMap(({ ip, hostname, ipMode }) => {
    const one = { ...textOf('ip', ip), ...textOf('hostname', hostname), ...textOf('ipMode', ipMode) };
    return one.ip === undefined && one.hostname === undefined ? [] : [one];
  });
}

function textOf<K extends keyof StatusAddress>(key: K, value: unknown): { readonly [key in K]?: string } {
  return typeof value === 'string' && value !== '' ? ({ [key]: value } as { readonly [key in K]: string }) : {};
}
