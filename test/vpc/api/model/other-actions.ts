import { ApiError } from './api-error.ts';
import type { ActionTable } from './call.ts';
import { type DescribeRules, select } from './filters.ts';
import type { ModelInstance } from './types.ts';

const DESCRIBE: DescribeRules<ModelInstance> = {
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
  },
};

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
    handle: ({ state, params }) => {
      const { page, total } = select(state.instances, params, DESCRIBE);
      return {
        InstanceSet: page.map((instance) => ({
          InstanceId: instance.instanceId,
          InstanceType: instance.instanceType,
          InstanceState: instance.state,
          CPU: instance.cores,
          Memory: instance.cores * 2,
          Placement: { Zone: instance.zone },
          VirtualPrivateCloud: { VpcId: instance.vpcId, SubnetId: instance.subnetId },
          PrivateIpAddresses: state
            .enisOf(instance.instanceId)
            .filter((eni) => eni.isPrimary)
            .flatMap((eni) => [...eni.ips.keys()]),
          PublicIpAddresses: null,
          SecurityGroupIds: [...instance.securityGroupIds],
        })),
        TotalCount: total,
      };
    },
  },
};
