import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { invalidState, requireIdle } from './eni-actions.ts';
import { type DescribeRules, select } from './filters.ts';
import { instanceLimits, ipsOf } from './limits.ts';
import type { CloudState } from './state.ts';
import type { ModelEni, ModelIp, ModelSubnet } from './types.ts';

/** Secondary addresses of an ENI that is bound to nothing: as many as the largest instance may have. */
const UNBOUND_IPS = 30;

const DESCRIBE_SUBNETS: DescribeRules<ModelSubnet> = {
  idField: 'SubnetIds',
  mostIds: 100,
  mostFilters: 10,
  mostValues: 100,
  hasTextPaging: true,
  invalidFilter: 'InvalidParameter.FilterInvalidKey',
  fields: {
    'subnet-id': (subnet) => [subnet.subnetId],
    'vpc-id': (subnet) => [subnet.vpcId],
    'cidr-block': (subnet) => [subnet.cidr],
    zone: (subnet) => [subnet.zone],
  },
};

/** The APIs of addresses and subnets. */
export const IP_ACTIONS: ActionTable = {
  AssignPrivateIpAddresses: {
    required: ['NetworkInterfaceId'],
    optional: ['PrivateIpAddresses', 'SecondaryPrivateIpAddressCount', 'QosLevel', 'ClientToken'],
    handle: assignIps,
  },
  UnassignPrivateIpAddresses: {
    required: ['NetworkInterfaceId', 'PrivateIpAddresses'],
    optional: ['InstanceId'],
    handle: unassignIps,
  },
  MigratePrivateIpAddress: {
    required: ['SourceNetworkInterfaceId', 'DestinationNetworkInterfaceId', 'PrivateIpAddress'],
    optional: [],
    handle: migrateIp,
  },
  DescribeUsedIpAddress: {
    required: ['VpcId'],
    optional: ['SubnetId', 'IpAddresses', 'Offset', 'Limit'],
    handle: ({ state, params }) => {
      const asked = new Set(params.texts('IpAddresses', 100));
      const ofVpc = [...state.enis.values()].filter(({ vpcId }) => vpcId === params.text('VpcId'));
      const onEnis = ofVpc.flatMap(({ eniId, vpcId, subnetId, ips }) =>
        [...ips.values()]
          .filter(({ ip }) => asked.has(ip))
          .map(({ ip }) => ({
            VpcId: vpcId,
            SubnetId: subnetId,
            IpAddress: ip,
            ResourceType: 'ENI',
            ResourceId: eniId,
          })),
      );
      // That a reserved address counts as used is inferred.
      const reserved = [...state.reservedIps.reservations.values()]
        .filter(({ ip }) => asked.has(ip) && state.holderOf(ip) === undefined)
        .map(({ vpcId, subnetId, ip, reservationId }) => ({
          VpcId: vpcId,
          SubnetId: subnetId,
          IpAddress: ip,
          ResourceType: 'RSVIP',
          ResourceId: reservationId,
        }));
      const IpAddressStates = [...onEnis, ...reserved];
      return { IpAddressStates, TotalCount: IpAddressStates.length };
    },
  },
  DescribeSubnets: {
    required: [],
    optional: ['SubnetIds', 'Filters', 'Offset', 'Limit'],
    handle: ({ state, params }) => {
      const { page, total } = select(state.subnets, params, DESCRIBE_SUBNETS);
      return {
        SubnetSet: page.map((subnet) => ({
          SubnetId: subnet.subnetId,
          VpcId: subnet.vpcId,
          SubnetName: subnet.subnetId,
          Zone: subnet.zone,
          CidrBlock: subnet.cidr,
          Ipv6CidrBlock: subnet.cidrV6 ?? '',
          AvailableIpAddressCount: subnet.pool.free,
          TotalIpAddressCount: subnet.pool.total,
        })),
        TotalCount: total,
      };
    },
  },
};

function assignIps({ state, params, begin }: ModelCall): object {
  const eni = state.eni(params.text('NetworkInterfaceId'));
  const wanted = params.textsOf('PrivateIpAddresses', 'PrivateIpAddress', 10);
  const count = params.integer('SecondaryPrivateIpAddressCount', 0, 0, UNBOUND_IPS);
  if (wanted.length + count === 0) {
    throw new ApiError('MissingParameter', 'PrivateIpAddresses or SecondaryPrivateIpAddressCount is missing.');
  }
  if (count > 10) throw new ApiError('InvalidParameterValue.LimitExceeded', 'more than 10 addresses in one call.');
  if (eni.state !== 'AVAILABLE') throw invalidState(eni);
  requireIdle(eni);
  if (ipsOf(eni, 4).length + wanted.length + count > mostIps(state, eni)) {
    throw new ApiError('LimitExceeded', 'Quota limit is reached.');
  }
  const subnet = state.subnet(eni.subnetId);
  const { pool } = subnet;
  const fresh = wanted.filter((ip) => state.reservedIps.of(ip) === undefined);
  if (pool.free < count + fresh.length) {
    throw new ApiError('ResourceInsufficient.Subnet', 'The subnet does not have sufficient IPs.');
  }
  const taken: string[] = [];
  try {
    for (const ip of wanted) taken.push(state.takeExact(subnet, ip));
  } catch (error) {
    for (const ip of taken) if (fresh.includes(ip)) pool.give(ip);
    throw error;
  }
  for (let more = 0; more < count; more++) taken.push(pool.take());
  for (const ip of taken) eni.ips.set(ip, { ip, isPrimary: false, state: 'PENDING' });
  state.touch(eni);
  begin({ kind: 'assign', eniId: eni.eniId, ips: taken });
  return {
    PrivateIpAddressSet: taken.map((ip) => ({ PrivateIpAddress: ip, Primary: false, State: 'PENDING' })),
  };
}

function unassignIps({ state, params, begin }: ModelCall): object {
  const eni = state.eni(params.text('NetworkInterfaceId'));
  const ips = params.textsOf('PrivateIpAddresses', 'PrivateIpAddress', 10).map((ip) => secondaryOf(eni, ip));
  if (ips.length === 0) throw new ApiError('MissingParameter', 'The parameter PrivateIpAddresses is empty.');
  if (eni.state !== 'AVAILABLE') throw invalidState(eni);
  requireIdle(eni);
  for (const ip of ips) ip.state = 'DELETING';
  state.touch(eni);
  begin({ kind: 'unassign', eniId: eni.eniId, ips: ips.map((ip) => ip.ip) });
  return {};
}

function migrateIp({ state, params, begin }: ModelCall): object {
  const from = state.eni(params.text('SourceNetworkInterfaceId'));
  const to = state.eni(params.text('DestinationNetworkInterfaceId'));
  const ip = from.ips.get(params.text('PrivateIpAddress'));
  if (ip === undefined) throw new ApiError('ResourceNotFound', 'The address is not on the source ENI.');
  if (ip.isPrimary) throw new ApiError('UnauthorizedOperation.PrimaryIp', 'A primary IP cannot be migrated.');
  if (from.subnetId !== to.subnetId) throw new ApiError('UnsupportedOperation', 'Different subnets.');
  if (from === to) throw new ApiError('UnsupportedOperation', 'Source and destination are the same ENI.');
  for (const eni of [from, to]) if (eni.state !== 'AVAILABLE') throw invalidState(eni);
  requireIdle(from);
  requireIdle(to);
  if (ipsOf(to, 4).length + 1 > mostIps(state, to)) throw new ApiError('LimitExceeded', 'Quota limit is reached.');
  ip.state = 'MIGRATING';
  state.touch(from);
  begin({ kind: 'migrate', fromEniId: from.eniId, toEniId: to.eniId, ip: ip.ip });
  return {};
}

function secondaryOf(eni: ModelEni, ip: string): ModelIp {
  const found = eni.ips.get(ip);
  if (found === undefined) throw new ApiError('ResourceNotFound', `The address ${ip} is not on ${eni.eniId}.`);
  if (found.isPrimary) throw new ApiError('UnsupportedOperation', 'The primary IP cannot be released.');
  return found;
}

function mostIps(state: CloudState, eni: ModelEni): number {
  const instance = state.instances.get(eni.attachment?.instanceId ?? '');
  return instance === undefined ? UNBOUND_IPS : instanceLimits(instance.cores).ipsPerEni;
}
