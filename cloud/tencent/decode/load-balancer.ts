import { boolean, integer, list, optional, record, required } from '../../../runtime/decode.ts';
import type {
  LoadBalancer,
  LoadBalancerOutcome,
  LoadBalancerQuotas,
  LoadBalancerTask,
  PodLimits,
} from '../../load-balancers.ts';
import {
  COUNT,
  decodeAnswer,
  listUpTo,
  NAME,
  SHORT_NAME,
  SHORT_TEXT,
  TEXT,
  tagsOf,
  timeOf,
  withEmptyList,
} from './fields.ts';

const MAX_ON_PAGE = 100;
const MAX_TAGS = 100;
const MAX_NAMES = 1_000;
const MAX_QUOTAS = 1_000;

const TAG = record({ TagKey: required(SHORT_NAME), TagValue: optional(SHORT_TEXT) }, 'ignore');
const LOAD_BALANCER = record(
  {
    LoadBalancerId: required(SHORT_NAME),
    LoadBalancerName: optional(SHORT_TEXT),
    LoadBalancerType: optional(SHORT_TEXT),
    Status: optional(COUNT),
    LoadBalancerVips: optional(listUpTo(MAX_NAMES, SHORT_NAME)),
    LoadBalancerDomain: optional(SHORT_TEXT),
    VpcId: optional(SHORT_TEXT),
    SubnetId: optional(SHORT_TEXT),
    Tags: optional(listUpTo(MAX_TAGS, TAG)),
    SecureGroups: optional(listUpTo(MAX_NAMES, SHORT_NAME)),
    LoadBalancerPassToTarget: optional(boolean),
    SnatPro: optional(boolean),
    AttributeFlags: optional(listUpTo(MAX_NAMES, SHORT_TEXT)),
    ChargeType: optional(SHORT_TEXT),
    NetworkAttributes: optional(
      record({ InternetChargeType: optional(SHORT_TEXT), InternetMaxBandwidthOut: optional(COUNT) }, 'ignore'),
    ),
    VipIsp: optional(SHORT_TEXT),
    SlaType: optional(SHORT_TEXT),
    CreateTime: optional(SHORT_TEXT),
  },
  'ignore',
);
const PAGE = record(
  { LoadBalancerSet: required(listUpTo(MAX_ON_PAGE, LOAD_BALANCER)), TotalCount: required(COUNT) },
  'ignore',
);

/** Decodes the answer of DescribeLoadBalancers. @throws CloudError BAD_ANSWER */
export function decodeLoadBalancerPage(value: unknown): {
  readonly objects: readonly LoadBalancer[];
  readonly total: number;
} {
  const page = decodeAnswer(PAGE, withEmptyList(value, 'LoadBalancerSet'), 'DescribeLoadBalancers');
  return { objects: page.LoadBalancerSet.map(loadBalancerOf), total: page.TotalCount };
}

type WireLoadBalancer = NonNullable<ReturnType<typeof LOAD_BALANCER>>;

const NORMAL = 1;

function loadBalancerOf(wire: WireLoadBalancer): LoadBalancer {
  const { LoadBalancerType: type, NetworkAttributes, VipIsp, SlaType } = wire;
  const { InternetChargeType: chargeType, InternetMaxBandwidthOut: bandwidthMbps } = NetworkAttributes ?? {};
  return {
    loadBalancerId: wire.LoadBalancerId,
    name: wire.LoadBalancerName ?? '',
    type: type === 'OPEN' || type === 'INTERNAL' ? type : 'UNKNOWN',
    isNormal: wire.Status === NORMAL,
    vips: wire.LoadBalancerVips ?? [],
    domain: wire.LoadBalancerDomain ?? '',
    vpcId: wire.VpcId ?? '',
    subnetId: wire.SubnetId ?? '',
    // Only this product uses these names for the members of a tag.
    tags: tagsOf(wire.Tags?.map(({ TagKey: Key, TagValue: Value = '' }) => ({ Key, Value }))),
    securityGroupIds: wire.SecureGroups ?? [],
    passesToTarget: wire.LoadBalancerPassToTarget ?? false,
    isSnatPro: wire.SnatPro ?? false,
    isDeleteProtected: wire.AttributeFlags?.includes('DeleteProtect') ?? false,
    isPrepaid: wire.ChargeType === 'PREPAID',
    ...(isSet(chargeType) ? { chargeType } : {}),
    ...(bandwidthMbps === undefined ? {} : { bandwidthMbps }),
    ...(isSet(VipIsp) ? { isp: VipIsp } : {}),
    ...(isSet(SlaType) ? { slaType: SlaType } : {}),
    createdAtMs: timeOf(wire.CreateTime),
  };
}

function isSet(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}

const ACCEPTED = record({ RequestId: required(SHORT_NAME), DealName: optional(SHORT_TEXT) }, 'ignore');

/** Decodes the answer of a change: the task that it began. @throws CloudError BAD_ANSWER */
export function decodeAccepted(value: unknown, action: string): LoadBalancerTask {
  const { RequestId: taskId, DealName = '' } = decodeAnswer(ACCEPTED, value, action);
  return { taskId, action, ...(DealName === '' ? {} : { dealName: DealName }) };
}

const STATUS = { done: 0, failed: 1, running: 2 } as const;
const TASK = record(
  {
    Status: required(integer(STATUS.done, STATUS.running)),
    LoadBalancerIds: optional(listUpTo(MAX_NAMES, SHORT_NAME)),
    Message: optional(SHORT_TEXT),
  },
  'ignore',
);

/** Decodes the answer of DescribeTaskStatus. @throws CloudError BAD_ANSWER */
export function decodeLoadBalancerTask(value: unknown): Exclude<LoadBalancerOutcome, { readonly kind: 'lost' }> {
  const { Status, LoadBalancerIds = [], Message = '' } = decodeAnswer(TASK, value, 'DescribeTaskStatus');
  if (Status === STATUS.done) return { kind: 'done', loadBalancerIds: LoadBalancerIds };
  return Status === STATUS.failed ? { kind: 'failed', reason: Message } : { kind: 'pending' };
}

const QUOTAS = record(
  {
    QuotaSet: required(
      listUpTo(
        MAX_QUOTAS,
        record({ QuotaId: required(SHORT_NAME), QuotaCurrent: optional(COUNT), QuotaLimit: optional(COUNT) }, 'ignore'),
      ),
    ),
  },
  'ignore',
);

const QUOTA_IDS: Readonly<Record<keyof LoadBalancerQuotas, string>> = {
  openLoadBalancers: 'TOTAL_OPEN_CLB_QUOTA',
  internalLoadBalancers: 'TOTAL_INTERNAL_CLB_QUOTA',
  listeners: 'TOTAL_LISTENER_QUOTA',
  rules: 'TOTAL_LISTENER_RULE_QUOTA',
  targets: 'TOTAL_TARGET_BIND_QUOTA',
  snatIps: 'TOTAL_SNAT_IP_QUOTA',
};

/** Decodes the answer of DescribeQuota. @throws CloudError BAD_ANSWER */
export function decodeLoadBalancerQuotas(value: unknown): LoadBalancerQuotas {
  const rows = decodeAnswer(QUOTAS, value, 'DescribeQuota').QuotaSet;
  const found = Object.entries(QUOTA_IDS).flatMap(([key, quotaId]) => {
    const { QuotaCurrent: used, QuotaLimit: limit } = rows.find((row) => row.QuotaId === quotaId) ?? {};
    return limit === undefined ? [] : [[key, { limit, ...(used === undefined ? {} : { used }) }] as const];
  });
  return Object.fromEntries(found);
}

const LIMITS = record(
  {
    PodLimitsInstanceSet: required(
      list(
        record(
          {
            Zone: optional(TEXT),
            InstanceType: required(NAME),
            PodLimits: required(
              record(
                {
                  TKERouteENINonStaticIP: optional(COUNT),
                  TKERouteENIStaticIP: optional(COUNT),
                  TKEDirectENI: optional(COUNT),
                },
                'ignore',
              ),
            ),
          },
          'ignore',
        ),
      ),
    ),
  },
  'ignore',
);

/** Decodes the answer of DescribeVpcCniPodLimits. @throws CloudError BAD_ANSWER */
export function decodePodLimits(value: unknown): readonly PodLimits[] {
  return decodeAnswer(LIMITS, value, 'DescribeVpcCniPodLimits').PodLimitsInstanceSet.map((wire) => ({
    instanceType: wire.InstanceType,
    zone: wire.Zone ?? '',
    routeEni: wire.PodLimits.TKERouteENINonStaticIP ?? 0,
    routeEniStatic: wire.PodLimits.TKERouteENIStaticIP ?? 0,
    directEni: wire.PodLimits.TKEDirectENI ?? 0,
  }));
}
