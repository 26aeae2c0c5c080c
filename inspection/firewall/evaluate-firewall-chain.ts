import type { FirewallChain, Hook } from './build-firewall-chains.ts';
import { type ChainVerdict, type MetRewrite, PASSES, type Packet } from './evaluate-chain.ts';

/**
 * Evaluates a base chain for a packet, by the place of the chain: 'passes' where such a packet does not come there. At
 * `input` the packet is one that a Pod sends to the node, at `output` one that the node sends to a Pod.
 */
export function evaluateFirewallChain(chain: FirewallChain, packet: Packet): ChainVerdict {
  const there = packetIn(chain, packet);
  return there === undefined ? PASSES : chain.verdict(there);
}

/** Returns what a base chain changes of a packet, by the place of the chain. */
export function rewritesAt(chain: FirewallChain, packet: Packet): readonly MetRewrite[] {
  const there = packetIn(chain, packet);
  return there === undefined ? [] : chain.rewrites(there);
}

/**
 * Reports whether a base chain drops a packet for want of a route back to its source: it asks without the mark by which that route is
 * found.
 */
export function dropsUnmarkedWayBack(chain: FirewallChain, { isMarkedWayBack, ...packet }: Packet): boolean {
  if (isMarkedWayBack !== true) return false;
  const { outcome } = evaluateFirewallChain(chain, { ...packet, isMarkedWayBack });
  return outcome === 'dropped' && evaluateFirewallChain(chain, packet).outcome !== 'dropped';
}

/** Returns the packet as the chain gets it; undefined where such a packet does not come there. */
function packetIn({ hook, families, devices }: FirewallChain, packet: Packet): Packet | undefined {
  const there = packetAt(hook, packet);
  if (there === undefined || !families.includes(packet.family)) return undefined;
  const links = hook === 'egress' ? there.oifs : there.iifs;
  const isForLink = devices === undefined || links.some((name) => devices.includes(name));
  return isForLink ? there : undefined;
}

/** Returns the packet as rules match it there: before the routing decision it has no outgoing link. */
function packetAt(hook: Hook, packet: Packet): Packet | undefined {
  switch (hook) {
    case 'ingress':
    case 'prerouting':
      return { ...packet, oifs: [] };
    case 'input':
      return packet.src === undefined ? undefined : { ...packet, oifs: [], isForNode: true };
    case 'output':
      return packet.dst === undefined ? undefined : { ...packet, iifs: [] };
    default:
      return packet;
  }
}
