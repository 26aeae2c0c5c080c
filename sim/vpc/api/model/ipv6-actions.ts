import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { invalidState, requireIdle } from './eni-actions.ts';
import type { Ipv6Pool } from './ipv6-pool.ts';
import { instanceLimits } from './limits.ts';
import type { CloudState } from './state.ts';
import type { ModelEni, ModelIp } from './types.ts';

/** IPv6 addresses of an ENI that is bound to nothing. */
const UNBOUND_IPS = 30;

/** The APIs of IPv6 addresses. They are secondary, all of them. */
export const IPV6_ACTIONS: ActionTable = {
  AssignIpv6Addresses: {
    required: ['NetworkInterfaceId'],
    optional: ['Ipv6Addresses', 'Ipv6AddressCount', 'ClientToken'],
    handle: assign,
  },
  UnassignIpv6Addresses: { required: ['NetworkInterfaceId', 'Ipv6Addresses'], optional: [], handle: unassign },
};

function assign({ state, params, begin }: ModelCall): object {
  const eni = state.eni(params.text('NetworkInterfaceId'));
  const wanted = params.textsOf('Ipv6Addresses', 'Address', 10);
  const count = params.integer('Ipv6AddressCount', 0, 0, 10);
  if (wanted.length + count === 0) {
    throw new ApiError('MissingParameter', 'Ipv6Addresses or Ipv6AddressCount is missing.');
  }
  if (eni.state !== 'AVAILABLE') throw invalidState(eni);
  requireIdle(eni);
  const held = [...eni.ips.keys()].filter((ip) => ip.includes(':')).length;
  if (held + wanted.length + count > mostIps(state, eni)) {
    throw new ApiError('LimitExceeded.Address', 'The number of IPv6 addresses exceeds the quota of the ENI.');
  }
  const taken = take(poolOf(state, eni), wanted, count);
  for (const ip of taken) eni.ips.set(ip, { ip, isPrimary: false, state: 'PENDING' });
  state.touch(eni);
  begin({ kind: 'assign', eniId: eni.eniId, ips: taken });
  return { Ipv6AddressSet: taken.map((ip) => ({ Address: ip, Primary: false, State: 'PENDING' })) };
}

function take(pool: Ipv6Pool, wanted: readonly string[], count: number): readonly string[] {
  const taken: string[] = [];
  try {
    for (const ip of wanted) taken.push(pool.takeExact(ip));
  } catch (error) {
    for (const ip of taken) pool.give(ip);
    throw error;
  }
  for (let more = 0; more < count; more++) taken.push(pool.take());
  return taken;
}

function unassign({ state, params, begin }: ModelCall): object {
  const eni = state.eni(params.text('NetworkInterfaceId'));
  const ips = params.textsOf('Ipv6Addresses', 'Address', 10).map((ip) => heldBy(eni, ip));
  if (eni.state !== 'AVAILABLE') throw invalidState(eni);
  requireIdle(eni);
  for (const ip of ips) ip.state = 'DELETING';
  state.touch(eni);
  begin({ kind: 'unassign', eniId: eni.eniId, ips: ips.map((ip) => ip.ip) });
  return {};
}

function heldBy(eni: ModelEni, ip: string): ModelIp {
  const found = eni.ips.get(ip);
  if (found === undefined || !ip.includes(':')) {
    throw new ApiError('ResourceNotFound', `The address ${ip} is not on ${eni.eniId}.`);
  }
  return found;
}

function poolOf(state: CloudState, eni: ModelEni): Ipv6Pool {
  const { poolV6 } = state.subnet(eni.subnetId);
  if (poolV6 !== undefined) return poolV6;
  throw new ApiError('UnsupportedOperation.UnassignCidrBlock', `The subnet ${eni.subnetId} has no IPv6 CIDR block.`);
}

function mostIps(state: CloudState, eni: ModelEni): number {
  const instance = state.instances.get(eni.attachment?.instanceId ?? '');
  return instance === undefined ? UNBOUND_IPS : instanceLimits(instance.cores).ipsPerEni;
}
