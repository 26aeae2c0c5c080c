import { integer, list, oneOf, optional, record, required } from '../../../runtime/decode.ts';
import type { LoadBalancer, LoadBalancerOutcome, PodLimits } from '../../load-balancers.ts';
import { COUNT, decodeAnswer, NAME, TEXT, tagsOf } from './fields.ts';

const TAG = record({ TagKey: required(NAME), TagValue: optional(TEXT) }, 'ignore');
const LOAD_BALANCER = record(
  {
    LoadBalancerId: required(NAME),
    LoadBalancerName: optional(TEXT),
    LoadBalancerType: required(oneOf(['OPEN', 'INTERNAL'])),
    Status: required(integer(0, 1)),
    LoadBalancerVips: optional(list(NAME)),
    VpcId: optional(TEXT),
    Tags: optional(list(TAG)),
  },
  'ignore',
);
const PAGE = record({ LoadBalancerSet: required(list(LOAD_BALANCER)), TotalCount: required(COUNT) }, 'ignore');

/** Decodes the answer of DescribeLoadBalancers. @throws CloudError BAD_ANSWER */
export function decodeLoadBalancers(value: unknown): readonly LoadBalancer[] {
  return decodeAnswer(PAGE, value, 'DescribeLoadBalancers').LoadBalancerSet.map((wire) => ({
    loadBalancerId: wire.LoadBalancerId,
    name: wire.LoadBalancerName ?? '',
    type: wire.LoadBalancerType,
    isNormal: wire.Status === 1,
    vips: wire.LoadBalancerVips ?? [],
    vpcId: wire.VpcId ?? '',
    // Only this product uses these names for the members of a tag.
    tags: tagsOf(wire.Tags?.map(({ TagKey: Key, TagValue: Value = '' }) => ({ Key, Value }))),
  }));
}

const STATUS = { done: 0, failed: 1, running: 2 } as const;
const TASK = record(
  {
    Status: required(integer(STATUS.done, STATUS.running)),
    LoadBalancerIds: optional(list(NAME)),
    Message: optional(TEXT),
  },
  'ignore',
);

/** Decodes the answer of DescribeTaskStatus. @throws CloudError BAD_ANSWER */
export function decodeLoadBalancerTask(value: unknown): Exclude<LoadBalancerOutcome, { readonly kind: 'lost' }> {
  const { Status, LoadBalancerIds = [], Message = '' } = decodeAnswer(TASK, value, 'DescribeTaskStatus');
  if (Status === STATUS.done) return { kind: 'done', loadBalancerIds: LoadBalancerIds };
  return Status === STATUS.failed ? { kind: 'failed', reason: Message } : { kind: 'pending' };
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
