import { finding } from '../catalogue/catalogue.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { FirewallChain } from '../firewall/build-firewall-chains.ts';
import type { Packet, Rewrite } from '../firewall/evaluate-chain.ts';
import { rewritesAt } from '../firewall/evaluate-firewall-chain.ts';

/** A TTL below this may not reach hosts of the Internet. */
const LOW_TTL = 16;

/**
 * Finds that a chain is sure to change the TTL or the destination of a packet that the node forwards. It is an error where
 * the node itself drops the packet then: it forwards none whose TTL is 1.
 */
export function findRewriteFault(chain: FirewallChain, packet: Packet): Finding | undefined {
  const { name, element, hook, show } = chain;
  const isBeforeForwarding = hook === 'ingress' || hook === 'prerouting';
  for (const { rewrite, isSure } of rewritesAt(chain, packet)) {
    const change = changeOf(rewrite);
    if (!isSure || change === undefined) continue;
    const isDropped = rewrite.kind === 'ttl' && rewrite.value <= 1 && isBeforeForwarding;
    return finding('packet-rewritten', {
      what: `${name} ${change} ${packetText(packet)}`,
      fix: [show, ...chain.fix(packet)],
      subjects: [element],
      ...(isDropped ? { severity: 'error' as const } : {}),
    });
  }
  return undefined;
}

function changeOf(rewrite: Rewrite): string | undefined {
  if (rewrite.kind === 'ttl') return rewrite.value < LOW_TTL ? `sets TTL ${rewrite.value} in packets` : undefined;
  return rewrite.kind === 'destination' ? `sends to ${rewrite.value} the packets` : undefined;
}

function packetText({ src, dst }: Packet): string {
  return [src === undefined ? [] : [`from ${src}`], dst === undefined ? [] : [`to ${dst}`]].flat().join(' ');
}
