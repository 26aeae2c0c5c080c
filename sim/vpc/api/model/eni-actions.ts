import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { type DescribeRules, select } from './filters.ts';
import { instanceLimits, ipsOf, wireEni } from './limits.ts';
import type { ModelEni } from './types.ts';

const DESCRIBE: DescribeRules<ModelEni> = {
  idField: 'NetworkInterfaceIds',
  mostIds: 100,
  mostFilters: 10,
  mostValues: 100,
  invalidFilter: 'InvalidParameter.FilterInvalidKey',
  tagsOf: (eni) => eni.tags,
  fields: {
    'vpc-id': (eni) => [eni.vpcId],
    'subnet-id': (eni) => [eni.subnetId],
    'network-interface-id': (eni) => [eni.eniId],
    'attachment.instance-id': (eni) => [eni.attachment?.instanceId],
    'groups.security-group-id': (eni) => eni.securityGroupIds,
    'network-interface-name': (eni) => [eni.name],
    'network-interface-description': (eni) => [eni.description],
    'address-ip': (eni) => ipsOf(eni, 4).map((ip) => ip.ip),
    'address-ipv6': (eni) => ipsOf(eni, 6).map((ip) => ip.ip),
    'is-primary': (eni) => [String(eni.isPrimary)],
    'eni-type': (eni) => [eni.isPrimary ? '1' : '0'],
  },
};

/** The APIs of ENIs. */
export const ENI_ACTIONS: ActionTable = {
  CreateNetworkInterface: {
    required: ['VpcId', 'NetworkInterfaceName', 'SubnetId'],
    optional: [
      'NetworkInterfaceDescription',
      'SecondaryPrivateIpAddressCount',
      'PrivateIpAddresses',
      'SecurityGroupIds',
      'Tags',
      'TrunkingFlag',
      'QosLevel',
      'IsRdma',
      'ClientToken',
    ],
    handle: createEni,
  },
  AttachNetworkInterface: {
    required: ['NetworkInterfaceId', 'InstanceId'],
    optional: ['AttachType', 'ClientToken'],
    handle: attachEni,
  },
  DetachNetworkInterface: {
    required: ['NetworkInterfaceId', 'InstanceId'],
    optional: ['ClientToken'],
    handle: detachEni,
  },
  DeleteNetworkInterface: { required: ['NetworkInterfaceId'], optional: [], handle: deleteEni },
  DescribeNetworkInterfaces: {
    required: [],
    optional: ['NetworkInterfaceIds', 'Filters', 'Offset', 'Limit'],
    handle: ({ state, params, asOfMs }) => {
      const enis = asOfMs === undefined ? state.enis : state.enisAsOf(asOfMs);
      const { page, total } = select(enis, params, DESCRIBE);
      return { NetworkInterfaceSet: page.map((eni) => wireEni(eni)), TotalCount: total };
    },
  },
  DescribeNetworkInterfaceLimit: {
    required: ['InstanceId'],
    optional: [],
    handle: ({ state, params }) => {
      const id = params.text('InstanceId');
      const instance = state.instances.get(id.startsWith('eni-') ? (state.eni(id).attachment?.instanceId ?? '') : id);
      if (instance === undefined) throw new ApiError('InvalidInstanceId.NotFound', `The instance ${id} is not found.`);
      const limits = instanceLimits(instance.cores);
      return {
        EniQuantity: limits.enis,
        EniPrivateIpAddressQuantity: limits.ipsPerEni,
        ...(instance.extendEnis === undefined
          ? {}
          : { ExtendEniQuantity: instance.extendEnis, ExtendEniPrivateIpAddressQuantity: limits.ipsPerEni }),
        SubEniQuantity: 0,
        SubEniPrivateIpAddressQuantity: 0,
      };
    },
  },
  DescribeVpcLimits: {
    required: ['LimitTypes'],
    optional: [],
    handle: ({ state, params }) => {
      const known: Readonly<Record<string, number>> = {
        'vpc-max-enis': state.vpcEniQuota,
        'route-table-max-policies': state.routeTables.quota,
      };
      const VpcLimitSet = params.texts('LimitTypes', 100).map((LimitType) => {
        const LimitValue = known[LimitType];
        if (LimitValue === undefined) throw new ApiError('InvalidParameterValue', 'The limit type is unknown.');
        return { LimitType, LimitValue };
      });
      return { VpcLimitSet };
    },
  },
  ModifyNetworkInterfaceAttribute: {
    required: ['NetworkInterfaceId'],
    optional: ['NetworkInterfaceName', 'NetworkInterfaceDescription', 'SecurityGroupIds', 'TrunkingFlag'],
    handle: ({ state, params }) => {
      const eni = state.eni(params.text('NetworkInterfaceId'));
      const groups = state.securityGroups.known(params.texts('SecurityGroupIds', 100));
      if (params.has('SecurityGroupIds')) eni.securityGroupIds = groups;
      if (params.has('NetworkInterfaceName')) eni.name = params.text('NetworkInterfaceName', 60);
      if (params.has('NetworkInterfaceDescription')) eni.description = params.text('NetworkInterfaceDescription', 60);
      state.touch(eni);
      return {};
    },
  },
  AssociateNetworkInterfaceSecurityGroups: {
    required: ['NetworkInterfaceIds', 'SecurityGroupIds'],
    optional: [],
    handle: (call) => changeGroups(call, (held, groups) => [...held, ...groups.filter((id) => !held.includes(id))]),
  },
  DisassociateNetworkInterfaceSecurityGroups: {
    required: ['NetworkInterfaceIds', 'SecurityGroupIds'],
    optional: [],
    handle: (call) => changeGroups(call, (held, groups) => held.filter((id) => !groups.includes(id))),
  },
};

function createEni({ state, params, begin }: ModelCall): object {
  const vpcId = params.text('VpcId');
  if (vpcId !== state.spec.vpcId) throw new ApiError('ResourceNotFound', `The resource ${vpcId} does not exist.`);
  const subnet = state.subnet(params.text('SubnetId'));
  const name = params.text('NetworkInterfaceName', 60);
  const count = params.integer('SecondaryPrivateIpAddressCount', 0, 0, 10);
  const wanted = params.textsOf('PrivateIpAddresses', 'PrivateIpAddress', 10);
  const given = state.securityGroups.known(params.texts('SecurityGroupIds', 100));
  if (state.secondaryEnis >= state.vpcEniQuota) {
    throw new ApiError(
      'LimitExceeded.NetworkInterfaceLimitExceeded',
      'The number of ENIs exceeds the quota of the VPC.',
    );
  }
  if (subnet.pool.free < 1 + count + wanted.length) {
    throw new ApiError('ResourceInsufficient.Subnet', 'The subnet does not have sufficient IPs.');
  }
  const taken = wanted.map((ip) => subnet.pool.takeExact(ip));
  for (let more = 0; more < count; more++) taken.push(subnet.pool.take());
  const eni = state.makeEni({
    subnet,
    name,
    description: params.text('NetworkInterfaceDescription', 60),
    ip: subnet.pool.take(),
    groups: params.has('SecurityGroupIds') ? given : ['sg-default0'],
    tags: params.tags(),
    isPrimary: false,
  });
  for (const ip of taken) eni.ips.set(ip, { ip, isPrimary: false, state: 'PENDING' });
  state.touch(eni);
  begin({ kind: 'create', eniId: eni.eniId });
  return { NetworkInterface: wireEni(eni) };
}

function attachEni({ state, params, begin }: ModelCall): object {
  const eni = state.eni(params.text('NetworkInterfaceId'));
  const instance = state.instance(params.text('InstanceId'));
  if (eni.attachment !== undefined) {
    throw new ApiError('UnsupportedOperation.AttachmentAlreadyExists', 'The binding relationship already exists.');
  }
  if (eni.state !== 'AVAILABLE') throw invalidState(eni);
  requireIdle(eni);
  if (eni.vpcId !== instance.vpcId) throw new ApiError('UnsupportedOperation.VpcMismatch', 'Different VPCs.');
  if (eni.zone !== instance.zone) throw new ApiError('UnsupportedOperation.ZoneMismatch', 'Different zones.');
  if (!['RUNNING', 'STOPPED'].includes(instance.state)) {
    throw new ApiError('UnsupportedOperation.InvalidState', `The instance is ${instance.state}.`);
  }
  if (eni.securityGroupIds.length === 0) {
    throw new ApiError('UnsupportedOperation', 'An ENI without a security group cannot be bound.');
  }
  const held = state.enisOf(instance.instanceId);
  const isExtension = params.integer('AttachType', 0, 0, 1) === 1;
  const ofType = held.filter(({ attachment }) => attachment?.isExtension === isExtension);
  if (ofType.length >= (isExtension ? (instance.extendEnis ?? 0) : instanceLimits(instance.cores).enis)) {
    throw new ApiError('LimitExceeded', 'Quota limit is reached.');
  }
  const used = new Set(held.map((one) => one.attachment?.deviceIndex));
  const deviceIndex = Array.from({ length: 64 }, (_, index) => index + 1).find((index) => !used.has(index)) ?? 64;
  eni.state = 'ATTACHING';
  state.bind(eni, instance.instanceId, deviceIndex, isExtension);
  state.touch(eni);
  begin({ kind: 'attach', eniId: eni.eniId });
  return {};
}

function detachEni({ state, params, begin }: ModelCall): object {
  const eni = state.eni(params.text('NetworkInterfaceId'));
  if (eni.isPrimary) throw new ApiError('UnsupportedOperation', 'The primary ENI cannot be unbound.');
  if (eni.attachment?.instanceId !== params.text('InstanceId')) {
    throw new ApiError('UnsupportedOperation.InvalidState', 'Invalid resource status: not bound to that instance.');
  }
  if (eni.state !== 'AVAILABLE') throw invalidState(eni);
  requireIdle(eni);
  eni.state = 'DETACHING';
  state.touch(eni);
  begin({ kind: 'detach', eniId: eni.eniId });
  return {};
}

function deleteEni({ state, params, begin }: ModelCall): object {
  const eni = state.eni(params.text('NetworkInterfaceId'));
  if (eni.attachment !== undefined) throw new ApiError('ResourceInUse', 'The ENI is bound to an instance.');
  if (eni.state !== 'AVAILABLE') throw invalidState(eni);
  requireIdle(eni);
  eni.state = 'DELETING';
  state.touch(eni);
  begin({ kind: 'delete', eniId: eni.eniId });
  return {};
}

function changeGroups(
  { state, params }: ModelCall,
  change: (held: readonly string[], groups: readonly string[]) => readonly string[],
): object {
  const groups = state.securityGroups.known(params.texts('SecurityGroupIds', 100));
  const enis = params.texts('NetworkInterfaceIds', 100).map((eniId) => state.eni(eniId));
  for (const eni of enis) {
    eni.securityGroupIds = change(eni.securityGroupIds, groups);
    state.touch(eni);
  }
  return {};
}

/** The complaint about an ENI that is between two states. */
export function invalidState(eni: ModelEni): ApiError {
  return new ApiError('UnsupportedOperation.InvalidState', `Invalid resource status: ${eni.eniId} is ${eni.state}.`);
}

/** One change of an ENI at a time. @throws ApiError UnsupportedOperation.MutexOperationTaskRunning */
export function requireIdle(eni: ModelEni): void {
  if ([...eni.ips.values()].every((ip) => ip.state === 'AVAILABLE')) return;
  throw new ApiError(
    'UnsupportedOperation.MutexOperationTaskRunning',
    'The resource mutual exclusion operation is being executed.',
  );
}
