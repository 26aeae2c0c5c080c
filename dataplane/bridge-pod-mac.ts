import { parseIp } from '../runtime/ip-text.ts';

/**
 * Returns the MAC of the Pod's end of a port: it depends on the Pod's address alone. Pods on the bridge send to each
 * other by MAC, and remember the one of an address for long: with another MAC, the next Pod of the address would get none
 * of their packets for seconds. Locally administered, in the form that Kubernetes' kubenet had.
 */
export function bridgePodMac(ip: string): string {
  const bytes = parseIp(ip) ?? new Uint8Array(4);
  return [0x0a, 0x58, ...bytes.slice(-4)].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}
