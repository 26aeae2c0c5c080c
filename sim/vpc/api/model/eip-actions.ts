import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { type DescribeRules, select } from './filters.ts';
import { instanceEips, wireTags } from './limits.ts';
import type { CloudState } from './state.ts';
import type { ModelEip, ModelEni } from './types.ts';

const DESCRIBE: DescribeRules<ModelEip> = {
  idField: 'AddressIds',
  mostIds: 100,
  mostFilters: 10,
  mostValues: 100,
  invalidFilter: 'InvalidParameter.FilterInvalidKey',
  tagsOf: (eip) => eip.tags,
  fields: {
    'address-id': (eip) => [eip.eipId],
    'address-name': (eip) => [eip.name],
    'address-ip': (eip) => [eip.publicIp],
    'address-status': (eip) => [eip.status],
    'instance-id': (eip) => [eip.binding?.instanceId],
    'private-ip-address': (eip) => [eip.binding?.ip],
    'network-interface-id': (eip) => [eip.binding?.eniId],
  },
};

/** The APIs of EIPs. Their tasks are numbers. */
export const EIP_ACTIONS: ActionTable = {
  AllocateAddresses: {
    required: [],
    optional: [
      'AddressCount',
      'AddressName',
      'AddressType',
      'InternetServiceProvider',
      'InternetChargeType',
      'InternetMaxBandwidthOut',
      'BandwidthPackageId',
      'Tags',
      'ClientToken',
    ],
    handle: allocate,
  },
  AssociateAddress: {
    required: ['AddressId'],
    optional: ['InstanceId', 'NetworkInterfaceId', 'PrivateIpAddress'],
    handle: associate,
  },
  DisassociateAddress: {
    required: ['AddressId'],
    optional: ['ReallocateNormalPublicIp'],
    handle: (call) => {
      const eip = eipOf(call.state, call.params.text('AddressId'));
      requireStatus(eip, ['BIND', 'BIND_ENI']);
      eip.status = 'UNBINDING';
      return beginEip(call, 'eip-unbind', [eip.eipId]);
    },
  },
  ReleaseAddresses: {
    required: ['AddressIds'],
    optional: [],
    handle: (call) => {
      const eips = call.params.texts('AddressIds', 20).map((eipId) => eipOf(call.state, eipId));
      for (const eip of eips) requireStatus(eip, ['UNBIND']);
      for (const eip of eips) eip.status = 'OFFLINING';
      return beginEip(
        call,
        'eip-release',
        eips.map((eip) => eip.eipId),
      );
    },
  },
  DescribeAddresses: {
    required: [],
    optional: ['AddressIds', 'Filters', 'Offset', 'Limit'],
    handle: ({ state, params, asOfMs }) => {
      const eips = asOfMs === undefined ? state.eips : state.eipsAsOf(asOfMs);
      const { page, total } = select(eips, params, DESCRIBE);
      return { AddressSet: page.map((eip) => wireEip(eip, state)), TotalCount: total };
    },
  },
  DescribeTaskResult: {
    required: ['TaskId'],
    optional: [],
    handle: ({ state, params }) => {
      const taskId = params.integer('TaskId', 0, 0, Number.MAX_SAFE_INTEGER);
      const task = state.tasks.get(String(taskId));
      if (task === undefined) throw new ApiError('ResourceNotFound', `The task ${taskId} does not exist.`);
      return { TaskId: taskId, Result: task.status };
    },
  },
};

function allocate(call: ModelCall): object {
  const { state, params } = call;
  const count = params.integer('AddressCount', 1, 1, 20);
  const quota = state.spec.eips ?? 20;
  if (state.eips.size + count > quota) {
    throw new ApiError('AddressQuotaLimitExceeded', 'The number of EIPs exceeds the quota of the region.');
  }
  const day = Math.floor(state.nowMs / DAY_MS);
  if (state.allocations.day !== day) state.allocations = { day, count: 0 };
  if (state.allocations.count + count > (state.spec.eipsPerDay ?? 2 * quota)) {
    throw new ApiError('AddressQuotaLimitExceeded.DailyAllocate', 'As many EIPs were applied for today as may be.');
  }
  state.allocations.count += count;
  const eipIds = Array.from({ length: count }, () => {
    const serial = state.serial('public-ip');
    const eip: ModelEip = {
      eipId: state.nextId('eip'),
      name: params.text('AddressName', 60),
      publicIp: `198.51.${100 + Math.floor(serial / 250)}.${(serial % 250) + 1}`,
      status: 'CREATING',
      bandwidthMbps: params.integer('InternetMaxBandwidthOut', 1, 1, 2000),
      isp: params.text('InternetServiceProvider') || 'BGP',
      tags: params.tags(),
    };
    state.eips.set(eip.eipId, eip);
    return eip.eipId;
  });
  return { AddressSet: eipIds, ...beginEip(call, 'eip-allocate', eipIds) };
}

const DAY_MS = 86_400_000;

function associate(call: ModelCall): object {
  const { state, params } = call;
  const isOfInstance = params.has('InstanceId');
  if (isOfInstance === params.has('NetworkInterfaceId')) {
    throw new ApiError('InvalidParameter.Coexist', 'Either InstanceId or NetworkInterfaceId and PrivateIpAddress.');
  }
  const eip = eipOf(state, params.text('AddressId'));
  requireStatus(eip, ['UNBIND']);
  const { eni, ip } = targetOf(call);
  const address = eni.ips.get(ip);
  if (address === undefined) throw new ApiError('ResourceNotFound', `The address ${ip} is not on ${eni.eniId}.`);
  if (address.eipId !== undefined) {
    throw new ApiError('InvalidPrivateIpAddress.AlreadyBindEip', `The address ${ip} has an EIP.`);
  }
  const instanceId = eni.attachment?.instanceId;
  const instance = state.instances.get(instanceId ?? '');
  if (instance !== undefined) {
    const isOnIt = ({ binding }: ModelEip): boolean =>
      state.enis.get(binding?.eniId ?? '')?.attachment?.instanceId === instanceId;
    const bound = [...state.eips.values()].filter(isOnIt).length;
    if (bound >= instanceEips(instance.cores)) {
      throw new ApiError('LimitExceeded.InstanceAddressQuota', 'The instance holds as many EIPs as it may.');
    }
  }
  eip.status = 'BINDING';
  eip.binding = { eniId: eni.eniId, ip, isOfInstance, ...(instanceId === undefined ? {} : { instanceId }) };
  address.eipId = eip.eipId;
  return beginEip(call, 'eip-bind', [eip.eipId]);
}

function targetOf({ state, params }: ModelCall): { readonly eni: ModelEni; readonly ip: string } {
  if (!params.has('InstanceId')) {
    const eniId = params.text('NetworkInterfaceId');
    if (!state.enis.has(eniId)) throw new ApiError('InvalidNetworkInterfaceId.NotFound', `${eniId} is not found.`);
    return { eni: state.eni(eniId), ip: params.text('PrivateIpAddress') };
  }
  const eni = state.enisOf(params.text('InstanceId')).find((candidate) => candidate.isPrimary);
  const ip = [...(eni?.ips.values() ?? [])].find((candidate) => candidate.isPrimary)?.ip;
  if (eni === undefined || ip === undefined) throw new ApiError('InvalidInstanceId.NotFound', 'No such instance.');
  return { eni, ip };
}

function beginEip(
  { state, begin }: ModelCall,
  kind: 'eip-allocate' | 'eip-bind' | 'eip-unbind' | 'eip-release',
  eipIds: readonly string[],
): object {
  const taskId = String(1_000_000 + state.serial('eip-task'));
  begin({ kind, eipIds }, taskId);
  for (const eipId of eipIds) state.touchEip(eipOf(state, eipId));
  return { TaskId: taskId };
}

function eipOf(state: CloudState, eipId: string): ModelEip {
  const eip = state.eips.get(eipId);
  if (eip === undefined) throw new ApiError('InvalidAddressId.NotFound', `The address ${eipId} is not found.`);
  return eip;
}

function requireStatus(eip: ModelEip, allowed: readonly string[]): void {
  if (allowed.includes(eip.status)) return;
  throw new ApiError('InvalidAddressIdStatus.NotPermit', `The address ${eip.eipId} is ${eip.status}.`);
}

/** Where its ENI is now: an EIP goes with the address that it is bound to. */
function instanceOf({ binding }: ModelEip, state: CloudState): string | undefined {
  return binding === undefined ? undefined : state.enis.get(binding.eniId)?.attachment?.instanceId;
}

function wireEip(eip: ModelEip, state: CloudState): object {
  return {
    AddressId: eip.eipId,
    AddressName: eip.name,
    AddressIp: eip.publicIp,
    AddressStatus: eip.status,
    AddressType: 'EIP',
    Bandwidth: eip.bandwidthMbps,
    InternetServiceProvider: eip.isp,
    InstanceId: instanceOf(eip, state) ?? '',
    NetworkInterfaceId: eip.binding?.eniId ?? '',
    PrivateAddressIp: eip.binding?.ip ?? '',
    CascadeRelease: false,
    TagSet: wireTags(eip.tags),
  };
}
