import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { type DescribeRules, select } from './filters.ts';
import type { ModelInstance } from './types.ts';

const describeRules = (state: ModelCall['state']): DescribeRules<ModelInstance> => ({
  idField: 'InstanceIds',
  mostIds: 100,
  mostFilters: 10,
  mostValues: 5,
  invalidFilter: 'InvalidFilter',
  tagsOf: () => ({}),
  fields: {
    zone: (instance) => [instance.zone],
    'vpc-id': (instance) => [instance.vpcId],
    'subnet-id': (instance) => [instance.subnetId],
    'instance-id': (instance) => [instance.instanceId],
    'security-group-id': (instance) => instance.securityGroupIds,
    'instance-name': (instance) => [instance.instanceId],
    'private-ip-address': ({ instanceId }) => primaryIpsOf(state, instanceId),
  },
});

function primaryIpsOf(state: ModelCall['state'], instanceId: string): readonly string[] {
  return state
    .enisOf(instanceId)
    .filter((eni) => eni.isPrimary)
    .flatMap((eni) => [...eni.ips.keys()]);
}

/** The APIs of the VPC's tasks. */
export const TASK_ACTIONS: ActionTable = {
  DescribeVpcTaskResult: {
    required: ['TaskId'],
    optional: [],
    handle: ({ state, params }) => {
      const taskId = params.text('TaskId');
      const task = state.tasks.get(taskId);
      if (task === undefined) throw new ApiError('ResourceNotFound', `The task ${taskId} does not exist.`);
      const ResourceId = 'eniId' in task.effect ? task.effect.eniId : '';
      return {
        Status: task.status,
        Output: task.status === 'FAILED' ? 'internal resource scheduling failed' : '',
        Result: [{ ResourceId, Status: task.status }],
      };
    },
  },
};

/** The APIs of instances. */
export const CVM_ACTIONS: ActionTable = {
  DescribeInstances: {
    required: [],
    optional: ['InstanceIds', 'Filters', 'Offset', 'Limit'],
    handle: ({ state, params, asOfMs }) => {
      const instances = asOfMs === undefined ? state.instances : state.instancesAsOf(asOfMs);
      const { page, total } = select(instances, params, describeRules(state));
      return {
        InstanceSet: page.map((instance) => ({
          InstanceId: instance.instanceId,
          InstanceType: instance.instanceType,
          InstanceState: instance.state,
          CPU: instance.cores,
          Memory: instance.memoryGib,
          RestrictState: instance.restrictState,
          Placement: { Zone: instance.zone },
          VirtualPrivateCloud: { VpcId: instance.vpcId, SubnetId: instance.subnetId },
          PrivateIpAddresses: primaryIpsOf(state, instance.instanceId),
          PublicIpAddresses: instance.publicIps.length === 0 ? null : [...instance.publicIps],
          IPv6Addresses: instance.ipv6s.length === 0 ? null : [...instance.ipv6s],
          SecurityGroupIds: [...instance.securityGroupIds],
        })),
        TotalCount: total,
      };
    },
  },
  DescribeZones: {
    required: [],
    optional: [],
    handle: ({ state }) => {
      const names = [...new Set(state.spec.subnets.map(({ zone }) => zone))];
      const ZoneSet = names.map((zone) => ({
        Zone: zone,
        ZoneName: zone,
        ZoneId: zoneNumberOf(zone),
        ZoneState: 'AVAILABLE',
      }));
      return { ZoneSet, TotalCount: ZoneSet.length };
    },
  },
};

/** In the manner of the cloud: the number of the region, and that of the zone in it. */
function zoneNumberOf(zone: string): string {
  return `1000${(/\d+$/.exec(zone)?.[0] ?? '0').padStart(2, '0')}`;
}
