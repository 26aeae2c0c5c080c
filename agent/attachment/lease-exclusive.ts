import { hostVethName } from '../../dataplane/host-veth-name.ts';
import type { ExclusiveEni } from '../exclusive/exclusive-pool.ts';
import type { HostLink } from '../exclusive/locate-enis.ts';
import type { Lease } from '../journal/lease.ts';
import type { RandomBytes } from '../state/ports.ts';
import type { TimedAttachCommand } from './attach-command.ts';
import { randomMac } from './mac.ts';

/**
 * Builds the lease that is recorded before a Pod gets a whole ENI; it has all that is needed to bring the interface
 * back.
 * @param receivedMs When the ADD was received, milliseconds since boot.
 */
export function exclusiveLeaseOf(
  command: TimedAttachCommand,
  { eni, link }: { readonly eni: ExclusiveEni; readonly link: HostLink },
  {
    receivedMs,
    podMtu,
    randomBytes,
  }: { readonly receivedMs: number; readonly podMtu: number; readonly randomBytes: RandomBytes },
): Lease {
  const { containerId, ifName, network, plugin, netns, podNamespace, podName, podUid } = command;
  const primary = eni.primary.filter(({ family }) => family === 4 || !command.disableIpv6);
  return {
    ...{ containerId, ifName, network, plugin, netns, podNamespace, podName, podUid },
    addresses: primary.map(({ ip, family }) => ({ ip, family, eniId: eni.eniId, assignmentId: eni.assignmentId })),
    eniId: eni.eniId,
    state: 'pending',
    mtu: Math.min(command.mtu || podMtu || link.mtu, link.mtu),
    createdAtMs: receivedMs,
    hostVeth: { name: hostVethName(command), mac: randomMac(randomBytes) },
    podMac: eni.mac,
    nic: { mac: eni.mac, hostName: link.ifname, mtu: link.mtu, primary, sideMac: randomMac(randomBytes) },
  };
}
