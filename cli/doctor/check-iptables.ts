import { finding } from '../catalogue.ts';
import type { Finding } from '../finding.ts';
import type { NodeFacts } from '../node/node-facts.ts';
import { type Check, done, skipped, whenKnown } from './check.ts';
import { type IptablesRules, parseIptablesRules } from './parse-iptables-rules.ts';

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

/** Checks which program implements Services on this node, and whether rules of another mode are left over. */
export const KUBE_PROXY_CHECK: Check = {
  id: 'kube-proxy',
  scope: 'Services are done in one way: iptables, ipvs, nftables or Cilium',
  finds: ['kube-proxy-mode'],
  evaluate: ({ node, iptables }) =>
    whenKnown(iptables, (facts) => {
      const nft = nftObjects(node);
      if (facts.nft.kind === 'unknown' && node.host.nft.kind === 'unknown') return skipped(facts.nft.why);
      const { chains, rules } = parseIptablesRules(facts, nft);
      const has = (prefix: string) => rules.some(({ chain }) => chain.startsWith(prefix));
      const ipvs = node.host.links.find(({ ifname }) => ifname === 'kube-ipvs0');
      const isInUse = node.host.addresses.some(({ ifindex }) => ifindex === ipvs?.ifindex);
      const ways = [
        ...(has('KUBE-SVC-') ? ['iptables (chains KUBE-SVC-…)'] : []),
        ...(ipvs !== undefined && isInUse ? ['ipvs (addresses on kube-ipvs0)'] : []),
        ...(nft.some((object) => isTable(object, 'kube-proxy')) ? ['nftables (table kube-proxy)'] : []),
        ...(chains.some(({ chain }) => chain.startsWith('CILIUM_')) ? ['Cilium (chains CILIUM_…)'] : []),
      ];
      const proxies = ways.filter((way) => !way.startsWith('Cilium'));
      if (proxies.length < 2) return done([], [ways.length === 0 ? 'no kube-proxy was found' : ways.join(', ')]);
      const what = `kube-proxy’s rules are there in ${proxies.length} ways: ${proxies.join(', ')}`;
      const why =
        'The leftovers of an earlier mode translate packets to backends that may be gone: some connections to Services fail.';
      return done([
        finding('kube-proxy-mode', {
          what,
          why,
          fix: ['kube-proxy --cleanup', 'restart kube-proxy’s Pod of this node'],
          subjects: [],
        }),
      ]);
    }),
};

function isTable(object: Readonly<Record<string, unknown>>, name: string): boolean {
  const table = object['table'];
  return typeof table === 'object' && table !== null && 'name' in table && table.name === name;
}
