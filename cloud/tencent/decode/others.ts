import { list, oneOf, optional, record, required } from '../../../runtime/decode.ts';
import type { Eip, IpUser, Subnet } from '../../cloud.ts';
import { COUNT, decodeAnswer, NAME, TAGS, TEXT, tagsOf, withEmptyList } from './fields.ts';

const SUBNETS = record(
  {
    TotalCount: required(COUNT),
    SubnetSet: required(
      list(
        record(
          {
            SubnetId: required(NAME),
            VpcId: required(NAME),
            Zone: optional(TEXT),
            CidrBlock: required(NAME),
            Ipv6CidrBlock: optional(TEXT),
            AvailableIpAddressCount: required(COUNT),
            TotalIpAddressCount: optional(COUNT),
          },
          'ignore',
        ),
      ),
    ),
  },
  'ignore',
);

/** Decodes one page of DescribeSubnets. @throws CloudError BAD_ANSWER */
export function decodeSubnetPage(value: unknown): { readonly objects: readonly Subnet[]; readonly total: number } {
  const page = decodeAnswer(SUBNETS, withEmptyList(value, 'SubnetSet'), 'DescribeSubnets');
  const objects = page.SubnetSet.map((wire) => ({
    subnetId: wire.SubnetId,
    vpcId: wire.VpcId,
    zone: wire.Zone ?? '',
    cidr: wire.CidrBlock,
    ...((wire.Ipv6CidrBlock ?? '') === '' ? {} : { cidrV6: wire.Ipv6CidrBlock ?? '' }),
    freeIps: wire.AvailableIpAddressCount,
    totalIps: wire.TotalIpAddressCount ?? 0,
  }));
  return { objects, total: page.TotalCount };
}

const IP_USERS = record(
  {
    IpAddressStates: required(
      list(
        record(
          {
            SubnetId: optional(TEXT),
            IpAddress: required(NAME),
            ResourceType: optional(TEXT),
            ResourceId: optional(TEXT),
          },
          'ignore',
        ),
      ),
    ),
  },
  'ignore',
);

/** Decodes the answer of DescribeUsedIpAddress. @throws CloudError BAD_ANSWER */
export function decodeIpUsers(value: unknown): readonly IpUser[] {
  const action = 'DescribeUsedIpAddress';
  return decodeAnswer(IP_USERS, withEmptyList(value, 'IpAddressStates'), action).IpAddressStates.map((wire) => ({
    ip: wire.IpAddress,
    subnetId: wire.SubnetId ?? '',
    resourceType: wire.ResourceType ?? '',
    resourceId: wire.ResourceId ?? '',
  }));
}

const EIPS = record(
  {
    TotalCount: required(COUNT),
    AddressSet: required(
      list(
        record(
          {
            AddressId: required(NAME),
            AddressName: optional(TEXT),
            AddressIp: optional(TEXT),
            AddressStatus: required(NAME),
            InstanceId: optional(TEXT),
            NetworkInterfaceId: optional(TEXT),
            PrivateAddressIp: optional(TEXT),
            TagSet: optional(TAGS),
          },
          'ignore',
        ),
      ),
    ),
  },
  'ignore',
);

/** Decodes one page of DescribeAddresses. @throws CloudError BAD_ANSWER */
export function decodeEipPage(value: unknown): { readonly objects: readonly Eip[]; readonly total: number } {
  const page = decodeAnswer(EIPS, value, 'DescribeAddresses');
  const objects = page.AddressSet.map((wire) => ({
    eipId: wire.AddressId,
    name: wire.AddressName ?? '',
    publicIp: wire.AddressIp ?? '',
    status: wire.AddressStatus,
    ...((wire.InstanceId ?? '') === '' ? {} : { instanceId: wire.InstanceId ?? '' }),
    ...((wire.NetworkInterfaceId ?? '') === '' ? {} : { eniId: wire.NetworkInterfaceId ?? '' }),
    ...((wire.PrivateAddressIp ?? '') === '' ? {} : { privateIp: wire.PrivateAddressIp ?? '' }),
    tags: tagsOf(wire.TagSet),
  }));
  return { objects, total: page.TotalCount };
}

const ALLOCATED = record({ AddressSet: required(list(NAME)), TaskId: required(NAME) }, 'ignore');

/** Decodes the answer of AllocateAddresses. @throws CloudError BAD_ANSWER */
export function decodeAllocated(value: unknown): { readonly eipIds: readonly string[]; readonly taskId: string } {
  const allocated = decodeAnswer(ALLOCATED, value, 'AllocateAddresses');
  return { eipIds: allocated.AddressSet, taskId: allocated.TaskId };
}

const REQUEST_ID = record({ RequestId: required(NAME) }, 'ignore');

/** Decodes the id of a VPC task: the RequestId of the call that began it. @throws CloudError BAD_ANSWER */
export function decodeRequestId(value: unknown, action: string): string {
  return decodeAnswer(REQUEST_ID, value, action).RequestId;
}

const TASK_ID = record({ TaskId: required(NAME) }, 'ignore');

/** Decodes the id of an EIP task, a number written as text. @throws CloudError BAD_ANSWER */
export function decodeTaskId(value: unknown, action: string): string {
  return decodeAnswer(TASK_ID, value, action).TaskId;
}

/** The state of a task, as both task APIs report it. */
type TaskStatus = 'SUCCESS' | 'FAILED' | 'RUNNING';

const STATUSES: readonly TaskStatus[] = ['SUCCESS', 'FAILED', 'RUNNING'];
const VPC_TASK = record({ Status: required(oneOf(STATUSES)), Output: optional(TEXT) }, 'ignore');
const EIP_TASK = record({ Result: required(oneOf(STATUSES)) }, 'ignore');

/** Decodes the answer of DescribeVpcTaskResult. @throws CloudError BAD_ANSWER */
export function decodeVpcTask(value: unknown): { readonly status: TaskStatus; readonly output: string } {
  const task = decodeAnswer(VPC_TASK, value, 'DescribeVpcTaskResult');
  return { status: task.Status, output: task.Output ?? '' };
}

/** Decodes the answer of DescribeTaskResult. @throws CloudError BAD_ANSWER */
export function decodeEipTask(value: unknown): { readonly status: TaskStatus; readonly output: string } {
  return { status: decodeAnswer(EIP_TASK, value, 'DescribeTaskResult').Result, output: '' };
}

const VPC_LIMITS = record(
  {
    VpcLimitSet: required(list(record({ LimitType: required(NAME), LimitValue: required(COUNT) }, 'ignore'))),
  },
  'ignore',
);

/** Decodes a quota out of the answer of DescribeVpcLimits; undefined when it is not listed. @throws CloudError BAD_ANSWER */
export function decodeVpcLimit(value: unknown, type: string): number | undefined {
  const { VpcLimitSet } = decodeAnswer(VPC_LIMITS, withEmptyList(value, 'VpcLimitSet'), 'DescribeVpcLimits');
  return VpcLimitSet.find(({ LimitType }) => LimitType === type)?.LimitValue;
}
