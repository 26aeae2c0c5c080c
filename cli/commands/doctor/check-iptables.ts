import { finding } from '../../../inspection/catalogue/catalogue.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { type IptablesRules, parseIptablesRules } from '../../../inspection/node/parse-iptables-rules.ts';
import { type Check, done, whenKnown } from './check.ts';

/** Checks that iptables rules are in one backend only. */
export const IPTABLES_CHECK: Check = {
  id: 'iptables',
  scope: 'iptables rules stand in one backend',
  finds: ['iptables-mix'],
  evaluate: ({ node, iptables }) =>
    whenKnown(iptables, (facts) => {
      const found = parseIptablesRules(facts, nftObjects(node));
      const counts = { legacy: countOf(found, 'legacy'), nft: countOf(found, 'nft') };
      const notes = [
        facts.legacy.kind === 'unknown'
          ? `legacy has the tables ${facts.legacyTables.join(', ')}, and ${facts.legacy.why}`
          : `${counts.legacy} rules in legacy`,
        `${counts.nft} rules in nft${facts.nft.kind === 'unknown' ? `, what they do was not read: ${facts.nft.why}` : ''}`,
      ];
      return done(mix(found, counts), notes);
    }),
};

function nftObjects({ host }: NodeFacts): readonly Readonly<Record<string, unknown>>[] {
  return host.nft.kind === 'known' ? host.nft.value.objects : [];
}

function countOf({ rules }: IptablesRules, backend: 'legacy' | 'nft'): number {
  return rules.filter((rule) => rule.backend === backend).length;
}

type Backend = 'legacy' | 'nft';

/** Returns the backend that kube-proxy uses. Where both or none have its rules, it is nft, which replaces legacy. */
function preferredBackend({ chains }: IptablesRules): Backend {
  const hasServices = (backend: Backend) =>
    chains.some((chain) => chain.backend === backend && chain.chain === 'KUBE-SERVICES');
  return hasServices('legacy') && !hasServices('nft') ? 'legacy' : 'nft';
}

function mix(found: IptablesRules, counts: { readonly legacy: number; readonly nft: number }): readonly Finding[] {
  if (counts.legacy === 0 || counts.nft === 0) return [];
  const preferred = preferredBackend(found);
  const what = `iptables-legacy has ${counts.legacy} rules and iptables-nft ${counts.nft}`;
  const fix = [
    ...['iptables', 'ip6tables'].map((name) => `update-alternatives --set ${name} /usr/sbin/${name}-${preferred}`),
    ...clearOtherBackend(found, preferred),
  ];
  return [finding('iptables-mix', { what, fix, subjects: [] })];
}

/**
 * Returns commands that save the other backend and delete its rules. Policies of DROP are set to ACCEPT first: without
 * its rules such a chain would drop everything, the user's own connection included.
 */
function clearOtherBackend({ chains, rules }: IptablesRules, preferred: Backend): readonly string[] {
  const other = preferred === 'nft' ? 'legacy' : 'nft';
  return ([4, 6] as const).flatMap((family) => {
    const program = `${family === 4 ? 'iptables' : 'ip6tables'}-${other}`;
    const isOther = (item: { readonly backend: Backend; readonly family: 4 | 6 }): boolean =>
      item.backend === other && item.family === family;
    const tables = new Set(rules.filter(isOther).map(({ table }) => table));
    if (tables.size === 0) return [];
    const dropping = chains.filter((chain) => isOther(chain) && chain.policy === 'DROP');
    return [
      `${program}-save >/root/${program}.saved`,
      ...dropping.map(({ table, chain }) => `${program} -t ${table} -P ${chain} ACCEPT`),
      ...[...tables].map((table) => `${program} -t ${table} -F`),
    ];
  });
}
