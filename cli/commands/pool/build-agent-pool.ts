import {
  ADDRESS_STATE,
  type BridgePods,
  type PoolAddress,
  type PoolEni,
  type PoolReply,
} from '../../../agent/api/ops-messages.ts';
import { buildBlocks } from './build-blocks.ts';
import type { AddressUse, AddressView, PoolEniView, PoolView } from './pool-view.ts';

/**
 * Builds the pool view from the reply of a running agent.
 * @param bridge GlobalRoute Pods, as its summary has them
 * @param role as its summary has it
 */
export function buildAgentPool(reply: PoolReply, nodeName: string, bridge?: BridgePods, role?: string): PoolView {
  const addresses = reply.addresses.map(addressOf);
  const blocks = buildBlocks(addresses, bridge?.podCidrs ?? []);
  return {
    source: 'agent',
    nodeName,
    ...(role === 'uplinks' ? { role } : {}),
    addresses,
    ...(blocks.length === 0 ? {} : { blocks }),
    enis: reply.enis.map(eniOf),
    warm: { min: reply.warmMin, max: reply.warmMax, ...(reply.limit === 0 ? {} : { limit: reply.limit }) },
    demand: reply.demand,
    ...(reply.asked === undefined ? {} : { asked: reply.asked.known ? reply.asked.addresses : 0 }),
    waiting: reply.waiting.map(({ containerId, podNamespace, podName }) =>
      podName === '' ? containerId : `${podNamespace}/${podName}`,
    ),
    ...(reply.hasSupply ? { supplyEpoch: reply.supplyEpoch } : {}),
    supplyProblem: reply.supplyProblem || (reply.hasSupply ? '' : 'no supply came yet'),
  };
}

const USES: Readonly<Record<number, AddressUse>> = {
  [ADDRESS_STATE.ADDRESS_STATE_FREE]: 'free',
  [ADDRESS_STATE.ADDRESS_STATE_IN_USE]: 'in-use',
  [ADDRESS_STATE.ADDRESS_STATE_COOLING]: 'cooling',
  [ADDRESS_STATE.ADDRESS_STATE_OFFERED]: 'offered',
  [ADDRESS_STATE.ADDRESS_STATE_RELEASING]: 'releasing',
  [ADDRESS_STATE.ADDRESS_STATE_KEPT]: 'kept',
  [ADDRESS_STATE.ADDRESS_STATE_REGISTERED]: 'registered',
};

function addressOf(address: PoolAddress): AddressView {
  const { ip, eniId, assignmentId, containerId, ifName, podNamespace, podName, coolRemainingMs } = address;
  // A newer agent may report an unknown state: such an address at least is not available now.
  const use = USES[address.state] ?? 'unready';
  return {
    ip,
    family: address.family === 6 ? 6 : 4,
    eniId,
    use,
    assignmentId,
    ...(containerId === '' ? {} : { owner: { containerId, ifName, podNamespace, podName } }),
    ...(use === 'cooling' ? { coolRemainingMs } : {}),
    ...(address.unlisted ? { isUnlisted: true as const } : {}),
    ...(address.keptFor === ''
      ? {}
      : { keptFor: { pods: address.keptFor, ...(address.keptUid === '' ? {} : { uid: address.keptUid }) } }),
  };
}

function eniOf({ eniId, ifname, table, slot, mac, primaryIps, subnetCidrs, ...eni }: PoolEni): PoolEniView {
  return {
    eniId,
    ...(ifname === '' ? {} : { ifname }),
    ...(table === 0 ? {} : { table, slot }),
    mac,
    primary: primaryIps.map((ip, index) => ({ ip, subnetCidr: subnetCidrs[index] ?? '' })),
    attached: eni.attached,
    draining: eni.draining,
    ready: eni.ready,
    problem: eni.problem,
  };
}
