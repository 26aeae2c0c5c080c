import type {
  DescribeLoadBalancersResponse,
  LoadBalancer,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import type { ModelCall } from '../call.ts';
import { type DescribeRules, select } from '../filters.ts';
import { writtenTime } from '../limits.ts';
import type { Params } from '../params.ts';
import { allTargets } from './layer7.ts';
import type { ModelLoadBalancer } from './types.ts';

/** What a public load balancer has when nothing else was ordered. */
const DEFAULT_BANDWIDTH_MBPS = 10;

const DESCRIBE: DescribeRules<ModelLoadBalancer> = {
  idField: 'LoadBalancerIds',
  mostIds: 20,
  mostFilters: 10,
  mostValues: 100,
  invalidFilter: 'InvalidParameterValue.InvalidFilter',
  tagsOf: ({ tags }) => tags,
  fields: {
    'charge-type': () => ['POSTPAID_BY_HOUR'],
    'internet-charge-type': ({ extras }) => [extras.internetChargeType],
    'master-zone-id': ({ extras }) => [extras.masterZoneId],
    'function-name': () => [],
    'vip-isp': ({ extras }) => [extras.vipIsp],
    'sla-type': ({ extras }) => [extras.slaType],
    exclusive: () => ['0'],
  },
};

/** Answers DescribeLoadBalancers: the newest first, unless asked otherwise, so that a new one moves every page. */
export function describeLoadBalancers({ state, params, asOfMs }: ModelCall): Partial<DescribeLoadBalancersResponse> {
  const fits = matcher(params);
  const found = [...state.clb.balancers(asOfMs).values()].filter(fits);
  params.choice('OrderBy', ['CreateTime'], 'CreateTime');
  const isNewestFirst = params.integer('OrderType', 1, 0, 1) === 1;
  const ordered = found.sort(byCreation);
  if (isNewestFirst) ordered.reverse();
  const { page, total } = select(new Map(ordered.map((one) => [one.loadBalancerId, one])), params, DESCRIBE);
  const hasCount = params.texts('AdditionalFields', 10).includes('TargetCount');
  return { LoadBalancerSet: page.map((one) => wireLoadBalancer(one, hasCount)), TotalCount: total };
}

function byCreation(a: ModelLoadBalancer, b: ModelLoadBalancer): number {
  return a.createdAtMs - b.createdAtMs || a.loadBalancerId.localeCompare(b.loadBalancerId);
}

/** The plain parameters that select. */
function matcher(params: Params): (balancer: ModelLoadBalancer) => boolean {
  const type = params.text('LoadBalancerType');
  const name = params.text('LoadBalancerName');
  const vpcId = params.text('VpcId');
  const group = params.text('SecurityGroup');
  const vips = params.texts('LoadBalancerVips', 20);
  const backendIps = params.texts('BackendPrivateIps', 20);
  const withTargets = params.integer('WithRs', -1, -1, 1);
  params.integer('Forward', 1, 0, 1);
  return (balancer) => {
    const ips = new Set([...balancer.listeners.values()].flatMap((one) => allTargets(one).map(ipOf)));
    return (
      (type === '' || balancer.type === type) &&
      balancer.name.includes(name) &&
      (vpcId === '' || balancer.vpcId === vpcId) &&
      (group === '' || balancer.securityGroupIds.includes(group)) &&
      (vips.length === 0 || (balancer.domain === '' && vips.includes(balancer.vip))) &&
      (backendIps.length === 0 || backendIps.some((ip) => ips.has(ip))) &&
      (withTargets === -1 || ips.size > 0 === (withTargets === 1))
    );
  };
}

function ipOf({ ip }: { readonly ip: string }): string {
  return ip;
}

function wireLoadBalancer(one: ModelLoadBalancer, hasCount: boolean): LoadBalancer {
  const isReady = one.state !== 'CREATING';
  const { vipIsp, slaType } = one.extras;
  const isOpen = one.type === 'OPEN';
  const { internetChargeType, internetMaxBandwidthOut = isOpen ? DEFAULT_BANDWIDTH_MBPS : undefined } = one.extras;
  return {
    LoadBalancerId: one.loadBalancerId,
    LoadBalancerName: one.name,
    LoadBalancerType: one.type,
    Forward: 1,
    Status: isReady ? 1 : 0,
    LoadBalancerVips: isReady && one.domain === '' ? [one.vip] : [],
    LoadBalancerDomain: isReady ? one.domain : '',
    VpcId: one.vpcId,
    SubnetId: one.subnetId ?? '',
    AddressIPVersion: 'ipv4',
    ChargeType: 'POSTPAID_BY_HOUR',
    CreateTime: writtenTime(one.createdAtMs),
    Tags: Object.entries(one.tags).map(([TagKey, TagValue]) => ({ TagKey, TagValue })),
    SecureGroups: [...one.securityGroupIds],
    LoadBalancerPassToTarget: one.passToTarget,
    SnatPro: one.snatPro,
    AttributeFlags: one.isDeleteProtected ? ['DeleteProtect'] : [],
    ...(internetChargeType === undefined && internetMaxBandwidthOut === undefined
      ? {}
      : {
          NetworkAttributes: {
            ...(internetChargeType === undefined ? {} : { InternetChargeType: internetChargeType }),
            ...(internetMaxBandwidthOut === undefined ? {} : { InternetMaxBandwidthOut: internetMaxBandwidthOut }),
          },
        }),
    ...(vipIsp === undefined ? {} : { VipIsp: vipIsp }),
    ...(slaType === undefined ? {} : { SlaType: slaType }),
    ...(hasCount
      ? { TargetCount: [...one.listeners.values()].reduce((sum, { targets }) => sum + targets.size, 0) }
      : {}),
  };
}
