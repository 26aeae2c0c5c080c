import { integer, list, optional, record, required } from '../../../runtime/decode.ts';
import { classifyError } from '../../classify-error.ts';
import type { Instance, Zone } from '../../cloud.ts';
import { COUNT, canonicalIpv6, decodeAnswer, NAME, TEXT, withEmptyList } from './fields.ts';

const SIZE = integer(0, 100_000);
const INSTANCES = record(
  {
    TotalCount: required(COUNT),
    InstanceSet: required(
      list(
        record(
          {
            InstanceId: required(NAME),
            InstanceType: optional(TEXT),
            InstanceState: optional(TEXT),
            RestrictState: optional(TEXT),
            CPU: optional(SIZE),
            Memory: optional(SIZE),
            Placement: optional(record({ Zone: optional(TEXT) }, 'ignore')),
            VirtualPrivateCloud: optional(record({ VpcId: optional(TEXT), SubnetId: optional(TEXT) }, 'ignore')),
            PrivateIpAddresses: optional(list(NAME)),
            PublicIpAddresses: optional(list(NAME)),
            IPv6Addresses: optional(list(NAME)),
            SecurityGroupIds: optional(list(NAME)),
          },
          'ignore',
        ),
      ),
    ),
  },
  'ignore',
);

/** Decodes the answer of DescribeInstances, whole on one page. @throws CloudError BAD_ANSWER, also when it is incomplete */
export function decodeInstances(value: unknown): readonly Instance[] {
  const action = 'DescribeInstances';
  const { InstanceSet, TotalCount } = decodeAnswer(INSTANCES, withEmptyList(value, 'InstanceSet'), action);
  if (InstanceSet.length !== TotalCount) {
    const text = `the answer has ${InstanceSet.length} of ${TotalCount} instances`;
    throw classifyError({ code: 'BAD_ANSWER', action, text });
  }
  return InstanceSet.map((wire) => {
    const { Memory: memoryGib, RestrictState: restrictState, PublicIpAddresses: publicIps } = wire;
    const ipv6s = wire.IPv6Addresses?.map(canonicalIpv6);
    return {
      instanceId: wire.InstanceId,
      instanceType: wire.InstanceType ?? '',
      cores: wire.CPU ?? 0,
      zone: wire.Placement?.Zone ?? '',
      vpcId: wire.VirtualPrivateCloud?.VpcId ?? '',
      subnetId: wire.VirtualPrivateCloud?.SubnetId ?? '',
      state: wire.InstanceState ?? '',
      privateIps: wire.PrivateIpAddresses ?? [],
      securityGroupIds: wire.SecurityGroupIds ?? [],
      ...(memoryGib === undefined ? {} : { memoryGib }),
      ...(restrictState === undefined || restrictState === '' ? {} : { restrictState }),
      ...(publicIps === undefined || publicIps.length === 0 ? {} : { publicIps }),
      ...(ipv6s === undefined || ipv6s.length === 0 ? {} : { ipv6s }),
    };
  });
}

const ZONES = record(
  {
    TotalCount: required(COUNT),
    ZoneSet: required(list(record({ Zone: required(NAME), ZoneId: required(NAME) }, 'ignore'))),
  },
  'ignore',
);

/** Decodes the answer of DescribeZones. @throws CloudError BAD_ANSWER */
export function decodeZones(value: unknown): readonly Zone[] {
  const { ZoneSet } = decodeAnswer(ZONES, withEmptyList(value, 'ZoneSet'), 'DescribeZones');
  return ZoneSet.map(({ Zone: name, ZoneId: number }) => ({ name, number }));
}
