import { unknown } from '../node/known.ts';
import type { HostFacts } from '../node/node-facts.ts';
import { buildFirewallChains, type FirewallChain } from './build-firewall-chains.ts';

/** The rules of iptables-nft are among those of nftables. */
const NFT_HAS_IT = unknown('nftables has its rules', 'nft list ruleset');

/** Returns the chains of other programs on the node: of nftables, and of iptables' legacy backend. */
export function nodeFirewalls({ nft, legacyIptables, queueListeners }: HostFacts): readonly FirewallChain[] {
  return buildFirewallChains({
    objects: nft.kind === 'known' ? nft.value.objects : [],
    iptables: { kind: 'known', value: { legacy: legacyIptables, nft: NFT_HAS_IT } },
    queueListeners,
  });
}
