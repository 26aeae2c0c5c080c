import { createHash } from 'node:crypto';
import { isIPv4 } from 'node:net';
import type { ListenerSettings } from '../../cloud/listeners.ts';
import type { SecurityGroupSpec } from '../../cloud/security-groups.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { BackendNode } from './decide-backend-node.ts';
import type { BalancerSource, DesiredListener, DesiredLoadBalancer } from './desired-load-balancer.ts';
import { blocking, type Notice, remark } from './notice.ts';
import { type PodFacts, planPodTargets, type UnboundPods } from './plan-pod-targets.ts';
import { planSourceRanges } from './plan-source-ranges.ts';
import { planTargets, type TargetPlan } from './plan-targets.ts';
import type { ServiceHead, ServicePort, ServiceSpec } from './read-service.ts';
import type { ServiceSettings } from './served-annotations.ts';

/** What a plan is made of. */
type PlanFacts = {
  readonly service: Pick<ServiceHead, 'namespace' | 'name' | 'uid'>;
  readonly spec: ServiceSpec;
  readonly settings: ServiceSettings;
  /** Every Node that may be a backend. */
  readonly nodes: readonly BackendNode[];
  /** Present: Pods are the backends, and not Nodes. */
  readonly pods?: PodFacts;
  readonly clusterId: string;
  readonly vpcId: string;
  /** Most targets of a listener; absent: not known. */
  readonly maxTargets?: number;
};

/** A plan. Without `desired` one of the notices blocks, and nothing is changed. */
type LoadBalancerPlan = {
  readonly desired?: DesiredLoadBalancer;
  readonly notices: readonly Notice[];
  /** What its listeners would be, also without `desired`. */
  readonly listeners: readonly DesiredListener[];
  /** Present where Pods are the backends. */
  readonly unbound?: UnboundPods;
};

const MAX_NAME = 80;
const SESSION_SECONDS = { min: 30, max: 3_600 } as const;
/** The bit of 2xx. */
const HTTP_2XX = 2;
const MAX_GROUP_NAME = 60;
const MAX_GROUP_DESCRIPTION = 100;

/** Returns the value of `OWNER_TAG` of a Service's load balancer. */
export function ownerOf(clusterId: string, uid: string): string {
  return `${clusterId}/service/${uid}`;
}

/** Plans the load balancer of a Service. It depends on its arguments alone. */
export function planLoadBalancer(facts: PlanFacts): LoadBalancerPlan {
  const { spec, settings } = facts;
  const isDirect = facts.pods !== undefined;
  const session = planSession(spec);
  const ranges = planSourceRanges(spec, settings);
  const { unbound, ...targets }: TargetPlan & { readonly unbound?: UnboundPods } =
    facts.pods === undefined ? planTargets(facts) : planPodTargets(facts.pods, settings, spec.ports, facts.maxTargets);
  const source = planSource(facts);
  const notices = [
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
  const listeners = spec.ports.flatMap((port): readonly DesiredListener[] => {
    if (port.protocol === 'SCTP' || (!isDirect && port.nodePort === undefined)) return [];
    const its = targets.targetsOf(port);
    const keptIps = targets.keptIpsOf?.(port) ?? [];
    const { protocol } = port;
    const settings: ListenerSettings = {
      scheduler: 'WRR',
      sessionSeconds: session.seconds,
      healthCheck: planHealthCheck(spec, port, isDirect),
    };
    return [
      {
        ...{ protocol, port: port.port, settings },
        ...(its === undefined ? {} : { targets: its }),
        ...(keptIps.length === 0 ? {} : { keptIps }),
        ...(targets.keepsNodes === true ? { keepsNodes: true } : {}),
        ...(facts.maxTargets === undefined ? {} : { maxTargets: facts.maxTargets }),
      },
    ];
  });
  const planned = { notices, listeners, ...(unbound === undefined ? {} : { unbound }) };
  if (source.value === undefined || notices.some(({ blocks }) => blocks)) return planned;
  const desired: DesiredLoadBalancer = {
    source: source.value,
    ...(settings.passToTarget === undefined ? {} : { passesToTarget: settings.passToTarget }),
    ...(settings.securityGroups === undefined ? {} : { securityGroupIds: settings.securityGroups }),
    ...(ranges.rules === undefined ? {} : { sourceGroup: { spec: groupSpecOf(facts), rules: ranges.rules } }),
    listenerName: listenerNameOf(facts),
    listeners,
    allowsAddressChange: settings.allowAddressChange ?? false,
  };
  return { ...planned, desired };
}

/** Returns what is desired of a load balancer while what its Service asks for is refused: its listeners stay, and their targets follow. */
export function followTargets(
  facts: Pick<PlanFacts, 'clusterId' | 'service'>,
  loadBalancerId: string,
  listeners: readonly DesiredListener[],
): DesiredLoadBalancer {
  return {
    source: { kind: 'existing', loadBalancerId },
    listenerName: listenerNameOf(facts),
    listeners: listeners.map((listener) => ({ ...listener, settings: {} })),
    allowsAddressChange: false,
    followsOnly: true,
  };
}

/** Returns the name of the listeners of a Service: it is of this Service of this cluster alone. */
export function listenerNameOf({ clusterId, service }: Pick<PlanFacts, 'clusterId' | 'service'>): string {
  const hash = createHash('sha256').update(ownerOf(clusterId, service.uid)).digest('hex').slice(0, 16);
  return `tke-eni-${hash}`;
}

function planHealthCheck(
  { externalTrafficPolicy, healthCheckNodePort }: ServiceSpec,
  { protocol }: ServicePort,
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
    tags: { [OWNER_TAG]: ownerOf(clusterId, uid), [CLUSTER_TAG]: clusterId },
  };
}

function planSource(facts: PlanFacts): { readonly value?: BalancerSource; readonly notices: readonly Notice[] } {
  const { spec, settings, service, clusterId, vpcId } = facts;
  const { subnetId, existedLbId, creation = {}, chargeType, bandwidthMbps } = settings;
  const vip = spec.loadBalancerIp ?? creation.Vip;
  if (vip !== undefined && (!isIPv4(vip) || (creation.Vip ?? vip) !== vip)) {
    const message = `loadBalancerIP must be one IPv4 address, and the same as Vip of the annotation; it is ${vip}`;
    return { notices: [blocking('ServiceInvalid', message)] };
  }
  if (existedLbId !== undefined) {
    const source = { kind: 'existing' as const, loadBalancerId: existedLbId, ...(vip === undefined ? {} : { vip }) };
    const { securityGroups, passToTarget } = settings;
    const unused = { subnetId, chargeType, bandwidthMbps, creation: settings.creation, securityGroups, passToTarget };
    return { value: source, notices: remarkUnused(unused, `${existedLbId} is not made or changed for this Service`) };
  }
  const base = {
    name: `${clusterId}_${service.namespace}_${service.name}`.slice(0, MAX_NAME),
    vpcId,
    tags: {
      [OWNER_TAG]: ownerOf(clusterId, service.uid),
      [CLUSTER_TAG]: clusterId,
      'tke-lb-serviceuuid': service.uid,
    },
    ...(creation.SlaType === undefined ? {} : { slaType: creation.SlaType }),
    ...(settings.passToTarget === undefined ? {} : { passesToTarget: settings.passToTarget }),
  };
  if (subnetId !== undefined) {
    const spec = { ...base, type: 'INTERNAL' as const, subnetId, ...(vip === undefined ? {} : { vip }) };
    const unused = { chargeType, bandwidthMbps, VipIsp: creation.VipIsp, MasterZoneId: creation.MasterZoneId };
    return { value: { kind: 'own', spec }, notices: remarkUnused(unused, 'the load balancer has no public address') };
  }
  if (vip !== undefined) {
    const message = `loadBalancerIP ${vip}: a public address cannot be chosen; name its subnet in the annotation service.kubernetes.io/qcloud-loadbalancer-internal-subnetid, or remove it`;
    return { notices: [blocking('ServiceRefused', message)] };
  }
  const open = {
    ...base,
    type: 'OPEN' as const,
    ...(chargeType === undefined ? {} : { chargeType }),
    ...(bandwidthMbps === undefined ? {} : { bandwidthMbps }),
    ...(creation.VipIsp === undefined ? {} : { isp: creation.VipIsp }),
    ...(creation.MasterZoneId === undefined ? {} : { masterZone: creation.MasterZoneId }),
  };
  return { value: { kind: 'own', spec: open }, notices: [] };
}

function remarkUnused(settings: Readonly<Record<string, unknown>>, why: string): readonly Notice[] {
  const unused = Object.keys(settings).filter((key) => settings[key] !== undefined);
  if (unused.length === 0) return [];
  return [remark('AnnotationRefused', `${unused.join(', ')}, made by annotations, has no effect: ${why}; remove it`)];
}
