import { isIPv4 } from 'node:net';
import type { Instance } from '../../cloud/cloud.ts';
import type { CloudNode } from './cloud-node.ts';

/**
 * Returns the IPv4 address of a Node. Of its InternalIPs the one counts that its instance has; where it has none of them, the
 * first address of the instance does. Undefined: the Node has no InternalIP.
 * @param instance as the cloud described it; undefined: that is not known, and the Node is believed
 */
export function trustedIpOf(
  { addresses }: Pick<CloudNode, 'addresses'>,
  instance: Pick<Instance, 'privateIps'> | undefined,
): string | undefined {
  const said = addresses.flatMap(({ type, address }) => (type === 'InternalIP' && isIPv4(address) ? [address] : []));
  const ips = instance?.privateIps ?? [];
  if (ips.length === 0 || said.length === 0) return said[0];
  return said.find((ip) => ips.includes(ip)) ?? ips[0];
}
