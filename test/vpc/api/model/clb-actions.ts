import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { type DescribeRules, select } from './filters.ts';
import { instanceLimits } from './limits.ts';
import type { ModelLoadBalancer } from './types.ts';

const DESCRIBE: DescribeRules<ModelLoadBalancer> = {
  idField: 'LoadBalancerIds',
  mostIds: 20,
  mostFilters: 10,
  mostValues: 100,
  invalidFilter: 'InvalidParameterValue.InvalidFilter',
  fields: {},
};
const STATUS = { SUCCESS: 0, FAILED: 1, RUNNING: 2 } as const;

/** The APIs of load balancers that we call. */
export const CLB_ACTIONS: ActionTable = {
  CreateLoadBalancer: {
    required: ['LoadBalancerType', 'VpcId'],
    optional: ['LoadBalancerName', 'SubnetId', 'Tags', 'ClientToken'],
    handle: create,
  },
  DescribeLoadBalancers: {
    required: [],
    optional: ['LoadBalancerIds', 'Offset', 'Limit'],
    handle: ({ state, params }) => {
      const { page, total } = select(state.loadBalancers, params, DESCRIBE);
      return { LoadBalancerSet: page.map(wireLoadBalancer), TotalCount: total };
    },
  },
  DeleteLoadBalancer: { required: ['LoadBalancerIds'], optional: ['ForceDelete'], handle: remove },
  DescribeTaskStatus: {
    required: ['TaskId'],
    optional: [],
    handle: ({ state, params }) => {
      const task = state.tasks.get(params.text('TaskId'));
      if (task === undefined) throw new ApiError('ResourceNotFound', 'The task does not exist.');
      const LoadBalancerIds = 'loadBalancerId' in task.effect ? [task.effect.loadBalancerId] : [];
      return {
        Status: STATUS[task.status],
        LoadBalancerIds,
        Message: task.status === 'FAILED' ? 'internal resource scheduling failed' : '',
      };
    },
  },
};

/** The APIs of the cluster service that we call. */
export const TKE_ACTIONS: ActionTable = {
  DescribeVpcCniPodLimits: {
    required: [],
    optional: ['Zone', 'InstanceFamily', 'InstanceType'],
    handle: ({ params }) => {
      const InstanceType = params.text('InstanceType');
      const cores = Number(/\d+$/.exec(InstanceType)?.[0] ?? 0);
      if (cores === 0) return { TotalCount: 0, PodLimitsInstanceSet: [] };
      const { enis, ipsPerEni } = instanceLimits(cores);
      const routed = (enis - 1) * (ipsPerEni - 1);
      const PodLimits = {
        TKERouteENINonStaticIP: routed,
        TKERouteENIStaticIP: routed,
        TKEDirectENI: enis - 1,
        TKESubENI: 0,
      };
      return { TotalCount: 1, PodLimitsInstanceSet: [{ Zone: params.text('Zone'), InstanceType, PodLimits }] };
    },
  },
};

function create({ state, params, begin }: ModelCall): object {
  const type = params.text('LoadBalancerType');
  if (type !== 'OPEN' && type !== 'INTERNAL') {
    throw new ApiError('InvalidParameterValue', `The type ${type} is not supported.`);
  }
  if ((type === 'INTERNAL') !== params.has('SubnetId')) {
    throw new ApiError('InvalidParameter.FormatError', 'SubnetId is needed for INTERNAL, and for nothing else.');
  }
  const subnet = params.has('SubnetId') ? state.subnet(params.text('SubnetId')) : undefined;
  const loadBalancerId = state.nextId('lb');
  const tags = params.objects('Tags').map((tag) => [String(tag['TagKey']), String(tag['TagValue'] ?? '')]);
  state.loadBalancers.set(loadBalancerId, {
    loadBalancerId,
    name: params.text('LoadBalancerName', 80),
    type,
    vpcId: params.text('VpcId'),
    vip: subnet === undefined ? `203.0.113.${state.serial('vip')}` : subnet.pool.take(),
    ...(subnet === undefined ? {} : { subnetId: subnet.subnetId }),
    tags: Object.fromEntries(tags),
    state: 'CREATING',
  });
  begin({ kind: 'clb-create', loadBalancerId });
  return { LoadBalancerIds: [loadBalancerId], DealName: '' };
}

function remove({ state, params, begin }: ModelCall): object {
  const [loadBalancerId = ''] = params.texts('LoadBalancerIds', 20);
  const found = state.loadBalancers.get(loadBalancerId);
  if (found === undefined) {
    throw new ApiError('InvalidParameter.LBIdNotFound', `The load balancer ${loadBalancerId} does not exist.`);
  }
  if (found.state !== 'NORMAL') {
    throw new ApiError(
      'FailedOperation.ResourceInOperating',
      `Loadbalancer(${loadBalancerId}) is not in normal desState, maybe some tasks are being processed, please try later`,
    );
  }
  found.state = 'DELETING';
  begin({ kind: 'clb-delete', loadBalancerId });
  return {};
}

function wireLoadBalancer(one: ModelLoadBalancer): object {
  return {
    LoadBalancerId: one.loadBalancerId,
    LoadBalancerName: one.name,
    LoadBalancerType: one.type,
    Status: one.state === 'CREATING' ? 0 : 1,
    LoadBalancerVips: [one.vip],
    VpcId: one.vpcId,
    Tags: Object.entries(one.tags).map(([TagKey, TagValue]) => ({ TagKey, TagValue })),
  };
}
