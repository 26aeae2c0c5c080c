import type { IngressRule } from '../../cloud/cloud.ts';
import { ipv4NetworkOf } from '../../crd/ipv4-range.ts';
import { canonicalIp } from '../../runtime/ip-text.ts';
import type { BackendPort } from '../backends/backend-port.ts';
import { blocking, type Notice, remark } from '../balancers/notice.ts';
import type { ServiceSpec } from './read-service.ts';
import { SERVED_ANNOTATIONS, type ServiceSettings } from './served-annotations.ts';

/** Who may connect to the load balancer of a Service. */
type SourcePlan = {
  /** Policies of a security group of its own; absent: everyone, or the security groups that the Service names decide. */
  readonly rules?: readonly IngressRule[];
  /** Clients are to be kept out, and cannot be: the Service has no listener. */
  readonly isShut?: true;
  readonly notices: readonly Notice[];
};

type Network = { readonly cidr: string } | 'everyone' | 'IPv6' | 'cloud widens it' | 'no network';

const FIELD = 'spec.loadBalancerSourceRanges';
const ANNOTATION = `the annotation ${SERVED_ANNOTATIONS.sourceRanges.name}`;
/** What becomes of the load balancer of a Service that is refused. */
const KEPT = 'Nothing but targets is changed until then';
const GROUPS = `the annotation ${SERVED_ANNOTATIONS.securityGroups.name}`;

/**
 * Plans the policies that admit the source ranges of a Service to its ports, and no other client.
 * @see k8s.io/cloud-provider service/helpers: the field has precedence over the annotation, and an empty one is no range
 */
export function planSourceRanges(
  spec: Pick<ServiceSpec, 'ports' | 'sourceRanges'>,
  settings: ServiceSettings,
): SourcePlan {
  const { sourceRanges: ofAnnotation = [] } = settings;
  const isField = spec.sourceRanges.length > 0;
  const place = isField ? FIELD : ANNOTATION;
  const ranges = [...new Set((isField ? spec.sourceRanges : ofAnnotation).map((range) => range.trim()))];
  const read = ranges.map((range) => ({ range, network: networkOf(range) }));
  const isIpv4 = read.some(({ network }) => network === 'everyone' || typeof network === 'object');
  const notices = [
    ...(isField ? remarkUnused(spec.sourceRanges, ofAnnotation) : []),
    ...read.flatMap(({ range, network }) => noticeOf(range, network, place, isIpv4)),
  ];
  const isForAll = ranges.length === 0 || read.some(({ network }) => network === 'everyone');
  const { existedLbId, securityGroups, pool } = settings;
  if (pool !== undefined) {
    const asked = [...(isForAll ? [] : [place]), ...((securityGroups?.length ?? 0) > 0 ? [GROUPS] : [])];
    return asked.length === 0 ? { notices } : { isShut: true, notices: [...notices, shut(asked, pool)] };
  }
  if (isForAll) return { notices };
  if (existedLbId !== undefined) {
    const message = `${place}: the load balancer ${existedLbId} is not made for this Service, so its security groups are not changed. ${KEPT}; write the ranges as rules of its security group, and remove them here`;
    return { notices: [...notices, blocking('ServiceRefused', message)] };
  }
  if (securityGroups?.length === 0) {
    const message = `${place} asks for a security group, and ${GROUPS} is empty, which takes all off; remove one of them. ${KEPT}`;
    return { notices: [...notices, blocking('ServiceRefused', message)] };
  }
  if (securityGroups !== undefined) {
    const message = `loadBalancerSourceRanges are not applied: the security groups of ${GROUPS} decide who may connect; remove it, or the ranges`;
    return { notices: [...notices, remark('ServiceRefused', message)] };
  }
  const cidrs = [...new Set(read.flatMap(({ network }) => (typeof network === 'object' ? network.cidr : [])))];
  return { rules: rulesOf(cidrs.sort(), spec.ports), notices };
}

/** A security group is of a whole load balancer, and other Services of the pool have listeners there. */
function shut(asked: readonly string[], pool: string): Notice {
  const message = `${asked.join(' and ')}: who may connect is the same for all Services of a load balancer, and those of the pool ${pool} are shared, so the Service has no listener; remove what is named here, or create the Service again without the annotation ${SERVED_ANNOTATIONS.pool.name}`;
  return remark('ServiceRefused', message);
}

/** Reads a network as Kubernetes does: bits of the host are left out. */
function networkOf(range: string): Network {
  const [, written = '', length = ''] = /^([^/]+)\/(\d{1,3})$/.exec(range) ?? [];
  const address = canonicalIp(written);
  const prefixLength = Number(length);
  if (address?.includes(':') === true) return prefixLength <= 128 ? 'IPv6' : 'no network';
  if (address === undefined || length === '' || prefixLength > 32) return 'no network';
  if (prefixLength === 0) return 'everyone';
  const { start, cidr } = ipv4NetworkOf(address, prefixLength);
  return start === 0 ? 'cloud widens it' : { cidr };
}

function noticeOf(range: string, network: Network, place: string, isIpv4: boolean): readonly Notice[] {
  const shown = JSON.stringify(range.slice(0, 60));
  if (network === 'no network') {
    const message = `${place}: ${shown} is no network; write one such as 10.0.0.0/8. ${KEPT}`;
    return [blocking('ServiceInvalid', message)];
  }
  if (network === 'cloud widens it') {
    const message = `${place}: ${shown}: the cloud takes every network of 0.0.0.0 for 0.0.0.0/0, which admits everyone; name other networks, or 0.0.0.0/0. ${KEPT}`;
    return [blocking('ServiceRefused', message)];
  }
  if (network !== 'IPv6') return [];
  if (isIpv4)
    return [remark('ServiceRefused', `${place}: ${shown} admits no client: the load balancer has no IPv6 address`)];
  const message = `${place}: ${shown}: the load balancer has no IPv6 address, so no client could connect; add the IPv4 networks of the clients. ${KEPT}`;
  return [blocking('ServiceRefused', message)];
}

function remarkUnused(field: readonly string[], annotation: readonly string[]): readonly Notice[] {
  if (annotation.length === 0 || annotation.toSorted().join() === field.toSorted().join()) return [];
  return [remark('AnnotationRefused', `${ANNOTATION} has no effect: ${FIELD} is set, and counts; remove it`)];
}

/** A rule for each network and protocol, with ports that follow each other as one range. */
function rulesOf(cidrs: readonly string[], ports: readonly BackendPort[]): readonly IngressRule[] {
  return (['TCP', 'UDP'] as const).flatMap((protocol) => {
    const its = ports.filter((port) => port.protocol === protocol).map(({ port }) => port);
    const ranges = rangesOf(its.toSorted((one, other) => one - other));
    return ranges.length === 0 ? [] : cidrs.map((cidr) => ({ isAccepted: true, cidr, protocol, ports: ranges }));
  });
}

function rangesOf(ports: readonly number[]): readonly (readonly [number, number])[] {
  const ranges: [number, number][] = [];
  for (const port of ports) {
    const last = ranges.at(-1);
    if (last !== undefined && port === last[1] + 1) last[1] = port;
    else ranges.push([port, port]);
  }
  return ranges;
}
