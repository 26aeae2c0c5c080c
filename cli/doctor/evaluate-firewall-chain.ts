import type { FirewallChain, Hook } from './build-firewall-chains.ts';
import type { Packet } from './evaluate-chain.ts';

/**
 * Evaluates a base chain for a packet, by the place of the chain: 'passes' where such a packet does not come there. At
 * `input` the packet is one that a Pod sends to the node, at `output` one that the node sends to a Pod.
 */
export function evaluateFirewallChain(chain: FirewallChain, packet: Packet): ReturnType<FirewallChain['outcome']> {
  const there = packetAt(chain.hook, packet);
  if (there === undefined || !chain.families.includes(packet.family)) return 'passes';
  const links = chain.hook === 'egress' ? there.oifs : there.iifs;
  const isForLink = chain.devices === undefined || links.some((name) => chain.devices?.includes(name) === true);
  return isForLink ? chain.outcome(there) : 'passes';
}

/** Returns the packet as rules match it there: before the routing decision it has no outgoing link. */
function packetAt(hook: Hook, packet: Packet): Packet | undefined {
  switch (hook) {
    case 'ingress':
    case 'prerouting':
      return { ...packet, oifs: [] };
    case 'input':
      return packet.src === undefined ? undefined : { ...packet, oifs: [] };
    case 'output':
      return packet.dst === undefined ? undefined : { ...packet, iifs: [] };
    default:
      return packet;
  }
}
