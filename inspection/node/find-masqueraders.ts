import { ifKnown } from './known.ts';
import type { HostFacts } from './node-facts.ts';

/** Chains of ip-masq-agent begin with this, in every release. */
const CHAIN = /^IP-MASQ/;

/** Names the chains of ip-masq-agent in the nat tables of both backends of iptables; empty where there are none. */
export function findMasqueraders({
  nft,
  legacyIptables,
}: Pick<HostFacts, 'nft' | 'legacyIptables'>): readonly string[] {
  const objects = ifKnown(nft)?.objects ?? [];
  const names = objects.flatMap(({ chain }) => (isNamed(chain) && CHAIN.test(chain.name) ? [chain.name] : []));
  const legacy = (ifKnown(legacyIptables) ?? []).flatMap((line) => {
    const [, name = ''] = /^:(\S+)/.exec(line) ?? [];
    return CHAIN.test(name) ? [name] : [];
  });
  return [...new Set([...names, ...legacy])].map((name) => `ip-masq-agent (chain ${name})`);
}

function isNamed(value: unknown): value is { readonly name: string } {
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string';
}
