import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { type DescribeRules, select } from './filters.ts';
import { wireTags, writtenTime } from './limits.ts';
import type { CloudState } from './state.ts';
import type { ModelReservedIp } from './types.ts';

const describeRules = (state: CloudState): DescribeRules<ModelReservedIp> => ({
  idField: 'ReserveIpIds',
  mostIds: 100,
  mostFilters: 10,
  mostValues: 100,
  invalidFilter: 'InvalidParameter.FilterInvalidKey',
  tagsOf: (one) => one.tags,
  fields: {
    'reserve-ip-id': (one) => [one.reservationId],
    'vpc-id': (one) => [one.vpcId],
    'subnet-id': (one) => [one.subnetId],
    'reserve-address-ip': (one) => [one.ip],
    'ip-type': () => ['0'],
    name: (one) => [one.name],
    state: (one) => [state.holderOf(one.ip) === undefined ? 'UnBind' : 'Bind'],
    'resource-id': (one) => [state.holderOf(one.ip)],
  },
});

const MOST_PER_CALL = 10;
const MOST_NAME = 60;

/**
 * The APIs of reserved addresses. The documentation has their fields only. What it does not say is modelled the
 * stricter way: an address in use cannot be reserved, a bound one not released, and there is a quota. That an ENI may
 * get a reserved address follows from the documented state `Bind` with the id of an ENI.
 */
export const RESERVED_IP_ACTIONS: ActionTable = {
  CreateReserveIpAddresses: {
    required: ['VpcId'],
    optional: ['IpAddresses', 'IpAddressCount', 'SubnetId', 'Name', 'Description', 'Tags', 'ClientToken'],
    handle: create,
  },
  DescribeReserveIpAddresses: {
    required: [],
    optional: ['ReserveIpIds', 'Filters', 'Offset', 'Limit'],
    handle: ({ state, params, asOfMs }) => {
      const all = asOfMs === undefined ? state.reservedIps.reservations : state.reservedIps.asOf(asOfMs);
      const { page, total } = select(all, params, describeRules(state));
      return { ReserveIpAddressSet: page.map((one) => wireReserved(state, one)), TotalCount: total };
    },
  },
  ModifyReserveIpAddress: {
    required: ['VpcId', 'ReserveIpId'],
    optional: ['Name', 'Description'],
    handle: ({ state, params }) => {
      const one = state.reservedIps.get(params.text('ReserveIpId'));
      if (params.has('Name')) one.name = params.text('Name', MOST_NAME);
      if (params.has('Description')) one.description = params.text('Description');
      return {};
    },
  },
  DeleteReserveIpAddresses: {
    required: ['VpcId', 'ReserveIpIds'],
    optional: [],
    handle: ({ state, params }) => {
      // None is released when one does not exist or is in use.
      const all = params.texts('ReserveIpIds', MOST_PER_CALL).map((id) => state.reservedIps.get(id));
      for (const { ip } of all) {
        const holder = state.holderOf(ip);
        if (holder !== undefined) throw new ApiError('ResourceInUse', `The address ${ip} is bound to ${holder}.`);
      }
      for (const one of all) state.releaseReserved(one);
      return {};
    },
  },
};

function create({ state, params }: ModelCall): object {
  const vpcId = params.text('VpcId');
  if (vpcId !== state.spec.vpcId) throw new ApiError('ResourceNotFound', `The VPC ${vpcId} does not exist.`);
  const wanted = params.texts('IpAddresses', MOST_PER_CALL);
  const count = params.integer('IpAddressCount', 0, 0, MOST_PER_CALL);
  if (wanted.length + count === 0) throw new ApiError('MissingParameter', 'IpAddresses or IpAddressCount is missing.');
  const name = params.text('Name', MOST_NAME);
  if (state.reservedIps.reservations.size + wanted.length + count > state.reservedIpQuota) {
    throw new ApiError('LimitExceeded', `The VPC may have ${state.reservedIpQuota} reserved addresses.`);
  }
  const { subnetId, pool } = state.subnet(params.text('SubnetId'));
  if (pool.free < wanted.length + count) {
    throw new ApiError('ResourceInsufficient.Subnet', 'The subnet does not have sufficient IPs.');
  }
  const taken: string[] = [];
  try {
    for (const ip of wanted) taken.push(pool.takeExact(ip));
  } catch (error) {
    for (const ip of taken) pool.give(ip);
    throw error;
  }
  for (let more = 0; more < count; more++) taken.push(pool.take());
  const common = { vpcId, subnetId, name, description: params.text('Description'), tags: params.tags() };
  const made = taken.map((ip) =>
    state.reservedIps.add({ ...common, reservationId: state.nextId('rsvip'), ip, createdAtMs: state.nowMs }),
  );
  return { ReserveIpAddressSet: made.map((one) => wireReserved(state, one)) };
}

function wireReserved(state: CloudState, one: ModelReservedIp): object {
  const holder = state.holderOf(one.ip);
  return {
    ReserveIpId: one.reservationId,
    VpcId: one.vpcId,
    SubnetId: one.subnetId,
    ReserveIpAddress: one.ip,
    ResourceId: holder ?? '',
    IpType: 0,
    State: holder === undefined ? 'UnBind' : 'Bind',
    Name: one.name,
    Description: one.description,
    CreatedTime: writtenTime(one.createdAtMs),
    TagSet: wireTags(one.tags),
  };
}
