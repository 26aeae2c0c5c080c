import type { ListenerSettings } from '../../cloud/listeners.ts';
import type { LoadBalancer, LoadBalancerSpec } from '../../cloud/load-balancers.ts';
import type { SecurityGroupSpec } from '../../cloud/security-groups.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { BackendPort } from '../backends/backend-port.ts';
import type { BackendNode } from '../backends/decide-backend-node.ts';
import { listenerNameOf, ownerOf, type StatusAddress } from '../balancers/balancer-owner.ts';
import type { BalancerSource, DesiredListener, DesiredLoadBalancer } from '../balancers/desired-load-balancer.ts';
import { blocking, type Notice, remark } from '../balancers/notice.ts';
import { listenerPortOf, type PoolPorts } from '../balancers/place-on-pool.ts';
import { assumeTargets, MAX_TARGETS_OF_PLAN as most, refuseProducts } from '../balancers/plan-bound.ts';
import { type PodBackends, planPodTargets, type UnboundPods } from '../balancers/plan-pod-targets.ts';
import { planSource, remarkUnused } from '../balancers/plan-source.ts';
import { planTargets, type TargetPlan } from '../balancers/plan-targets.ts';
import { configureListener, type LoadBalancerConfig } from '../service-configs/l4-settings.ts';
import { remarkUnusedConfig } from '../service-configs/remark-unused.ts';
import { planSourceRanges } from './plan-source-ranges.ts';
import type { ServiceHead, ServiceSpec } from './read-service.ts';
import type { ServiceSettings } from './served-annotations.ts';

/** What a plan is made of. */
type PlanFacts = {
  readonly service: Pick<ServiceHead, 'namespace' | 'name' | 'uid'>;
  readonly spec: ServiceSpec;
  readonly settings: ServiceSettings;
  /** Every Node that may be a backend. */
  readonly nodes: readonly BackendNode[];
  /** Present: Pods are the backends, and not Nodes. */
  readonly pods?: PodBackends;
  /** What its TkeServiceConfig says. `unknown`: it has one that cannot be read; absent: it has none. */
  readonly config?: LoadBalancerConfig | 'unknown';
  readonly clusterId: string;
  readonly vpcId: string;
  /** Where the pool has placed it, if it shares one. */
  readonly placement?: { readonly loadBalancerId: string; readonly ports: PoolPorts };
  /** Most targets of a listener; absent: not known. */
  readonly maxTargets?: number;
};

/** A plan. Without `desired` one of the notices blocks, and nothing is changed. */
type LoadBalancerPlan = {
  readonly desired?: DesiredLoadBalancer;
  readonly notices: readonly Notice[];
  /** What its listeners would be, also without `desired`; absent: it is too much to be planned. */
  readonly listeners?: readonly DesiredListener[];
  /** Present where Pods are the backends. */
  readonly unbound?: UnboundPods;
};

const MAX_NAME = 80;
const SESSION_SECONDS = { min: 30, max: 3_600 } as const;
/** The bit of 2xx. */
const HTTP_2XX = 2;
const MAX_GROUP_NAME = 60;
const MAX_GROUP_DESCRIPTION = 100;

/** Returns the value of `OWNER_TAG` of the load balancers of a pool. */
export function poolOwnerOf(clusterId: string, pool: string): string {
  return `${clusterId}/pool/${pool}`;
}

/** Plans the load balancer of a Service. It depends on its arguments alone. */
export function planLoadBalancer(facts: PlanFacts): LoadBalancerPlan {
  const { spec, settings } = facts;
  const tooMany = boundService(facts);
  if (tooMany.length > 0) return { notices: tooMany };
  const isDirect = facts.pods !== undefined;
  const maxTargets = facts.maxTargets ?? assumeTargets(spec.ports.length);
  const session = planSession(spec);
  const ranges = planSourceRanges(spec, settings);
  const { unbound, ...targets }: TargetPlan & { readonly unbound?: UnboundPods } =
    facts.pods === undefined
      ? planTargets({ ...facts, maxTargets })
      : planPodTargets(facts.pods, settings, spec.ports, maxTargets);
  const source = planSourceOf(facts);
  const notices: Notice[] = [
    ...refusePorts(spec, isDirect),
    ...refuseFamilies(spec),
    ...ranges.notices,
    ...session.notices,
    ...source.notices,
    ...targets.notices,
    ...(isDirect && settings.backendSelector !== undefined
      ? remarkUnused({ backendSelector: settings.backendSelector }, 'Pods are the backends')
      : []),
  ];
  const { config } = facts;
  const unused: string[] = [];
  const listeners = spec.ports.flatMap((port): readonly DesiredListener[] => {
    if (ranges.isShut) return [];
    if (port.protocol === 'SCTP' || (!isDirect && port.nodePort === undefined)) return [];
    const its = targets.targetsOf(port);
    const keptIps = targets.keptIpsOf?.(port) ?? [];
    const { protocol } = port;
    const configured = configureListener(
      {
        ...{ protocol, port: port.port, hasAffinity: spec.affinitySeconds !== undefined },
        needsItsCheck: checksNodes(spec, port, isDirect),
        settings: {
          scheduler: 'WRR',
          sessionSeconds: session.seconds,
          healthCheck: planHealthCheck(spec, port, isDirect),
        },
      },
      config === 'unknown' ? undefined : config,
    );
    unused.push(...configured.unused.map((name) => `${name} of ${protocol}/${port.port}`));
    return [
      {
        ...{ protocol, port: listenerPortOf(facts.placement?.ports, protocol, port.port) },
        settings: configured.settings,
        ...(config === 'unknown' ? { keepsSettings: true } : {}),
        ...(its === undefined ? {} : { targets: its }),
        ...(keptIps.length === 0 ? {} : { keptIps }),
        ...(targets.keepsNodes === true ? { keepsNodes: true } : {}),
        ...(facts.maxTargets === undefined ? {} : { maxTargets: facts.maxTargets }),
      },
    ];
  });
  notices.push(...remarkUnusedConfig('service', unused));
  const planned = { notices, listeners, ...(unbound === undefined ? {} : { unbound }) };
  if (source.value === undefined || notices.some(({ blocks }) => blocks)) return planned;
  const desired: DesiredLoadBalancer = {
    source: source.value,
    ...(settings.passToTarget === undefined ? {} : { passesToTarget: settings.passToTarget }),
    ...(settings.deletionProtection === undefined ? {} : { isDeleteProtected: settings.deletionProtection }),
    ...bandwidthOf(source.value, config),
    ...(settings.securityGroups === undefined ? {} : { securityGroupIds: settings.securityGroups }),
    ...(ranges.rules === undefined ? {} : { sourceGroup: { spec: groupSpecOf(facts), rules: ranges.rules } }),
    listenerName: listenerNameOf(facts.clusterId, facts.service.uid, 'service'),
    listeners,
    allowsAddressChange: settings.allowAddressChange ?? false,
  };
  return { ...planned, desired };
}

/** Whether the health check says which Nodes have Pods: nothing else does. */
function checksNodes(
  { externalTrafficPolicy, healthCheckNodePort }: ServiceSpec,
  { protocol }: BackendPort,
  isDirect: boolean,
): boolean {
  return protocol === 'TCP' && !isDirect && externalTrafficPolicy === 'Local' && healthCheckNodePort !== undefined;
}

function bandwidthOf(source: BalancerSource, config: PlanFacts['config']): Pick<DesiredLoadBalancer, 'bandwidthMbps'> {
  const mbps = config === 'unknown' ? undefined : config?.internetMaxBandwidthOut;
  return mbps === undefined || source.kind !== 'own' || source.spec.type !== 'OPEN' ? {} : { bandwidthMbps: mbps };
}

function planHealthCheck(
  { externalTrafficPolicy, healthCheckNodePort }: ServiceSpec,
  { protocol }: BackendPort,
  isDirect: boolean,
): NonNullable<ListenerSettings['healthCheck']> {
  // The cloud checks UDP by an answer that it knows, which only the program behind the port could give.
  if (protocol === 'UDP') return { isOn: false };
  if (isDirect || externalTrafficPolicy === 'Cluster' || healthCheckNodePort === undefined)
    return { isOn: true, kind: 'TCP', checkPort: 'target' };
  return {
    isOn: true,
    kind: 'HTTP',
    checkPort: healthCheckNodePort,
    http: { path: '/healthz', domain: 'healthz', method: 'GET', version: 'HTTP/1.1', codes: HTTP_2XX },
  };
}

function planSession({ affinitySeconds }: ServiceSpec): {
  readonly seconds: number;
  readonly notices: readonly Notice[];
} {
  if (affinitySeconds === undefined) return { seconds: 0, notices: [] };
  const seconds = Math.min(SESSION_SECONDS.max, Math.max(SESSION_SECONDS.min, affinitySeconds));
  if (seconds === affinitySeconds) return { seconds, notices: [] };
  const message = `sessionAffinityConfig.clientIP.timeoutSeconds ${affinitySeconds} is outside of what a listener can have; it has ${seconds}`;
  return { seconds, notices: [remark('AffinityClamped', message)] };
}

function refusePorts(
  { ports, externalTrafficPolicy, allocatesNodePorts }: ServiceSpec,
  isDirect: boolean,
): readonly Notice[] {
  if (ports.length === 0) return [blocking('ServiceInvalid', 'spec.ports is empty; a listener needs a port')];
  return ports.flatMap(({ protocol, port, nodePort }): readonly Notice[] => {
    const place = `port ${port} of ${protocol}`;
    if (protocol === 'SCTP')
      return [blocking('ServiceRefused', `${place}: a load balancer has listeners of TCP and UDP; remove the port`)];
    if (isDirect) return [];
    if (nodePort === undefined) {
      const cure = allocatesNodePorts
        ? 'it is tried again when it has one'
        : 'set allocateLoadBalancerNodePorts to true, or let Pods be the backends by service.cloud.tencent.com/direct-access';
      return [blocking('ServiceRefused', `${place} has no node port, and Nodes are the backends; ${cure}`)];
    }
    if (protocol === 'UDP' && externalTrafficPolicy === 'Local') {
      const message = `${place}: with externalTrafficPolicy Local only a health check says which Nodes have Pods, and a UDP listener cannot ask healthCheckNodePort; set it to Cluster`;
      return [blocking('ServiceRefused', message)];
    }
    return [];
  });
}

function refuseFamilies({ ipFamilies }: ServiceSpec): readonly Notice[] {
  if (!ipFamilies.includes('IPv4'))
    return [blocking('ServiceRefused', 'ipFamilies has no IPv4, and load balancers are of IPv4; add IPv4 to it')];
  if (!ipFamilies.includes('IPv6')) return [];
  return [remark('ServiceRefused', 'of ipFamilies IPv4 is served alone: the load balancer has no IPv6 address')];
}

function groupSpecOf({ clusterId, service: { namespace, name, uid } }: PlanFacts): SecurityGroupSpec {
  return {
    name: `${clusterId}_${namespace}_${name}`.slice(0, MAX_GROUP_NAME),
    description: `source ranges of the Service ${namespace}/${name}`.slice(0, MAX_GROUP_DESCRIPTION),
    tags: { [OWNER_TAG]: ownerOf(clusterId, uid, 'service'), [CLUSTER_TAG]: clusterId },
  };
}

/** Plans a load balancer for the pool that a Service shares. */
export function planPoolSpec(
  facts: Omit<PlanFacts, 'placement'>,
  pool: string,
): { readonly value?: Omit<LoadBalancerSpec, 'clientToken'>; readonly notices: readonly Notice[] } {
  const { value, notices } = planSourceOf(facts);
  if (value?.kind !== 'own') return { notices };
  const { clusterId } = facts;
  const name = `${clusterId}_pool_${pool}`.slice(0, MAX_NAME);
  const tags = { [OWNER_TAG]: poolOwnerOf(clusterId, pool), [CLUSTER_TAG]: clusterId };
  return { value: { ...value.spec, name, tags }, notices };
}

function planSourceOf(facts: PlanFacts): ReturnType<typeof planSource> {
  const { spec, settings, service, clusterId, vpcId, placement } = facts;
  if (placement !== undefined && settings.pool !== undefined) {
    const { passToTarget, deletionProtection, retain } = settings;
    const { loadBalancerId } = placement;
    const securityGroups = settings.securityGroups?.length === 0 ? settings.securityGroups : undefined;
    const poolOwner = poolOwnerOf(clusterId, settings.pool);
    const unused = { securityGroups, passToTarget, deletionProtection, retain };
    const why = `${loadBalancerId} is of a pool, and other Services have listeners there`;
    const subnet = settings.subnetId === undefined ? {} : { subnetId: settings.subnetId };
    const value = { kind: 'existing' as const, loadBalancerId, poolOwner, ...subnet };
    return { value, notices: remarkUnused(unused, why) };
  }
  const { loadBalancerIp } = spec;
  const address = loadBalancerIp === undefined ? {} : { loadBalancerIp };
  return planSource({ owner: { ...service, kind: 'service' }, settings, ...address, clusterId, vpcId });
}

/** What the size of a plan depends on. */
type SizeFacts = {
  readonly spec: Pick<ServiceSpec, 'ports' | 'sourceRanges'>;
  readonly settings: { readonly sourceRanges?: readonly string[] };
  readonly nodes: readonly BackendNode[];
  readonly pods?: Pick<PodBackends, 'slices'>;
  readonly maxTargets?: number;
};

/** Refuses a Service whose targets or source ranges are too many to be planned. It counts, and builds nothing. */
function boundService({ spec, settings, nodes, pods, maxTargets }: SizeFacts): readonly Notice[] {
  const ports = spec.ports.length;
  const ranges = Math.max(spec.sourceRanges.length, settings.sourceRanges?.length ?? 0);
  const endpoints = pods?.slices.reduce((sum, slice) => sum + slice.endpoints.length, 0);
  const slicePorts = pods?.slices.reduce((sum, slice) => sum + slice.ports.length, 0) ?? 0;
  const targets = Math.min(nodes.length, maxTargets ?? assumeTargets(ports));
  const fewerPorts = 'use fewer ports, or divide them between several Services';
  return refuseProducts('ServiceRefused', [
    endpoints === undefined
      ? { lengths: { ports, Nodes: targets }, most, cure: fewerPorts }
      : {
          lengths: { ports, 'endpoints of Pods': endpoints },
          most,
          cure: `${fewerPorts}, or let it select fewer Pods`,
        },
    { lengths: { 'ports of EndpointSlices': slicePorts }, most, cure: fewerPorts },
    { lengths: { ports, 'source ranges': ranges }, cure: 'use fewer ports, or wider source ranges' },
  ]);
}

/**
 * Plans where clients reach a Service. With ipMode VIP kube-proxy serves connections of the cluster itself, to every port of the
 * Service: not where the load balancer has another's listener on one of them. A name is always connected to. Empty: the load
 * balancer has no address yet, or serves no port of the Service.
 */
export function planAddresses(
  { vips, domain }: Pick<LoadBalancer, 'vips' | 'domain'>,
  { preventLoopback = true, pool, poolPorts }: Pick<ServiceSettings, 'preventLoopback' | 'pool' | 'poolPorts'>,
  clash?: 'some' | 'all',
): readonly StatusAddress[] {
  if (clash === 'all') return [];
  // Where ports are allotted, the address has ports of other Services under the numbers of this one.
  const isShort = preventLoopback && clash === undefined && !(pool !== undefined && poolPorts === 'allotted');
  if (vips.length > 0) return vips.map((ip) => ({ ip, ipMode: isShort ? 'VIP' : 'Proxy' }));
  return domain === '' ? [] : [{ hostname: domain }];
}
