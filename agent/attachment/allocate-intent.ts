import { bridgePodMac } from '../../dataplane/bridge-pod-mac.ts';
import { hostVethName } from '../../dataplane/host-veth-name.ts';
import type { Lease } from '../journal/lease.ts';
import { ON_LINK_ENI_ID } from '../journal/supply.ts';
import type { RandomBytes, UseCaseDeps } from '../state/ports.ts';
import { type Allocation, allocate } from './allocate.ts';
import { allocateBridge, type BridgeAllocation } from './allocate-bridge.ts';
import { allocateExclusive, type ExclusiveAllocation } from './allocate-exclusive.ts';
import type { TimedAttachCommand } from './attach-command.ts';
import type { ChosenNetwork } from './choose-network.ts';

/**
 * Takes what the Pod gets from its pool, and returns the lease to record. Nothing is recorded yet.
 * @param receivedMs When the ADD was received, milliseconds since boot.
 * @throws CniFailureError as `allocate`, `allocateBridge` and `allocateExclusive` do
 */
export async function allocateIntent(
  deps: UseCaseDeps,
  chosen: ChosenNetwork,
  receivedMs: number,
  signal: AbortSignal,
): Promise<Lease> {
  const { command } = chosen;
  if (command.plugin === 'direct-eni')
    return exclusiveLeaseOf(deps, command, receivedMs, await allocateExclusive(deps, chosen, signal));
  if (command.plugin === 'bridge' && !deps.settings.isCiliumPool)
    return bridgeLeaseOf(deps, command, receivedMs, await allocateBridge(deps, command));
  const allocation = await allocate(deps, command, signal);
  return allocation.eni.eniId === ON_LINK_ENI_ID
    ? onLinkLeaseOf(deps, command, receivedMs, allocation)
    : leaseOf(deps, ofEni(command), receivedMs, allocation);
}

/** What a lease is made of: addresses, and the ENI or interface that they are on. */
type Allocated = {
  readonly addresses: Lease['addresses'];
  readonly eni: { readonly eniId: string; readonly mtu: number };
};

function leaseOf(
  { settings, randomBytes }: UseCaseDeps,
  command: TimedAttachCommand,
  receivedMs: number,
  { addresses, eni }: Allocated,
): Lease {
  const { containerId, ifName, network, plugin, netns, podNamespace, podName, podUid } = command;
  return {
    ...{ containerId, ifName, network, plugin, netns, podNamespace, podName, podUid },
    addresses: addresses.map(({ ip, family, eniId, assignmentId }) => ({ ip, family, eniId, assignmentId })),
    eniId: eni.eniId,
    state: 'pending',
    mtu: Math.min(command.mtu || settings.podMtu || eni.mtu, eni.mtu),
    createdAtMs: receivedMs,
    ...(plugin === 'ipam' && command.uplink ? { uplink: true } : {}),
    ...(plugin === 'route-eni' || plugin === 'bridge'
      ? { hostVeth: { name: hostVethName(command), mac: randomMac(randomBytes) }, podMac: randomMac(randomBytes) }
      : {}),
  };
}

/** The lease of a Pod with a whole ENI has all that is needed to bring the interface back. */
function exclusiveLeaseOf(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  receivedMs: number,
  { eni: { eniId, mac, assignmentId, primary: all }, link }: ExclusiveAllocation,
): Lease {
  const primary = all.filter(({ family }) => family === 4 || !command.disableIpv6);
  const addresses = primary.map(({ ip, family }) => ({ ip, family, eniId, assignmentId }));
  return {
    ...leaseOf(deps, command, receivedMs, { addresses, eni: { eniId, mtu: link.mtu } }),
    hostVeth: { name: hostVethName(command), mac: randomMac(deps.randomBytes) },
    podMac: mac,
    nic: { mac, hostName: link.ifname, mtu: link.mtu, primary, sideMac: randomMac(deps.randomBytes) },
  };
}

function bridgeLeaseOf(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  receivedMs: number,
  { address, cidr, bridge }: BridgeAllocation,
): Lease {
  const eni = { eniId: address.eniId, mtu: bridge.mtu };
  const lease = leaseOf(deps, command, receivedMs, { addresses: [address], eni });
  const mac = bridge.wiring === 'bridge' ? { podMac: bridgePodMac(address.ip) } : {};
  return { ...lease, ...mac, block: { cidr, wiring: bridge.wiring } };
}

/** A Pod that asked for the bridge, which a CiliumNode's pool has no addresses for. */
function ofEni(command: TimedAttachCommand): TimedAttachCommand {
  return command.plugin === 'bridge' ? { ...command, plugin: 'route-eni' } : command;
}

/** An address of the primary interface is wired as a routed GlobalRoute Pod is, each as a block of its own. */
function onLinkLeaseOf(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  receivedMs: number,
  allocation: Allocation,
): Lease {
  const lease = leaseOf(deps, { ...command, plugin: 'bridge' }, receivedMs, allocation);
  return { ...lease, block: { cidr: `${lease.addresses[0]?.ip ?? ''}/32`, wiring: 'routed' } };
}

/** Makes a MAC address of our own: locally administered, unicast, else random. @see IEEE 802, "U/L address bit" */
function randomMac(randomBytes: RandomBytes): string {
  const [first = 0, ...rest] = randomBytes(6);
  return [(first & 0xfc) | 0x02, ...rest].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}
