import { finding } from '../catalogue.ts';
import { holds } from '../explain/find-prefix.ts';
import type { Finding } from '../finding.ts';
import type { NodeFacts } from '../node/node-facts.ts';
import { type Check, done, skipped, whenKnown } from './check.ts';
import { findIptablesRules, type IptablesRule, type IptablesRules, optionOf } from './find-iptables-rules.ts';
import { findOutline } from './find-outline.ts';

/** Looks at iptables: one backend, and forwarding not dropped by default. */
export const IPTABLES_CHECK: Check = {
  id: 'iptables',
  looksAt: 'iptables rules stand in one backend, the FORWARD chain lets Pods through',
  finds: ['iptables-mix', 'forward-policy-drop'],
  judge: ({ node, iptables }) =>
    whenKnown(iptables, (facts) => {
      const found = findIptablesRules(facts, nftObjects(node));
      const counts = { legacy: countOf(found, 'legacy'), nft: countOf(found, 'nft') };
      const notes = [
        facts.legacy.kind === 'unknown'
          ? `legacy has the tables ${facts.legacyTables.join(', ')}, and ${facts.legacy.why}`
          : `${counts.legacy} rules in legacy`,
        `${counts.nft} rules in nft${facts.nft.kind === 'unknown' ? `, what they do was not read: ${facts.nft.why}` : ''}`,
      ];
      const ips = findOutline(node).pods.flatMap((pod) => pod.ips);
      // Rules whose words are not known may accept.
      const drops = facts.nft.kind === 'known' ? dropped(found, ips) : [];
      return done([...mix(counts), ...drops], notes);
    }),
};

function nftObjects({ host }: NodeFacts): readonly Readonly<Record<string, unknown>>[] {
  return host.nft.kind === 'known' ? host.nft.value.objects : [];
}

function countOf({ rules }: IptablesRules, backend: 'legacy' | 'nft'): number {
  return rules.filter((rule) => rule.backend === backend).length;
}

function mix(counts: { readonly legacy: number; readonly nft: number }): readonly Finding[] {
  if (counts.legacy === 0 || counts.nft === 0) return [];
  const what = `iptables-legacy has ${counts.legacy} rules and iptables-nft ${counts.nft}`;
  const fix = [
    'iptables-legacy-save; iptables-nft-save',
    'update-alternatives --set iptables /usr/sbin/iptables-nft',
    'iptables-legacy -F; iptables-legacy -t nat -F; iptables-legacy -t mangle -F',
  ];
  return [finding('iptables-mix', { what, fix, subjects: [] })];
}

function dropped({ chains, rules }: IptablesRules, ips: readonly string[]): readonly Finding[] {
  return chains
    .filter(({ table, chain, policy }) => table === 'filter' && chain === 'FORWARD' && policy === 'DROP')
    .filter(({ backend }) => ips.length > 0 && !rules.some((rule) => rule.backend === backend && accepts(rule, ips)))
    .slice(0, 1)
    .map(({ backend }) =>
      finding('forward-policy-drop', {
        what: `the policy of FORWARD (iptables-${backend}) is DROP, and no rule there accepts the addresses of Pods`,
        fix: [`iptables-${backend} -P FORWARD ACCEPT`],
        subjects: [],
      }),
    );
}

/** Rules that let packets of Pods through whatever state they are in; what custom chains do is not followed. */
function accepts({ table, chain, words }: IptablesRule, ips: readonly string[]): boolean {
  if (table !== 'filter' || chain !== 'FORWARD' || optionOf(words, '-j') !== 'ACCEPT') return false;
  if (words.includes('!') || words.includes('-m') || words.includes('-p')) return false;
  const [src, dst] = [optionOf(words, '-s'), optionOf(words, '-d')];
  const [iif, oif] = [optionOf(words, '-i'), optionOf(words, '-o')];
  const isAnyLink = [iif, oif].every((name) => name === undefined || name === 'eni+');
  return (
    (isAnyLink && ips.some((ip) => holds(src, ip) && holds(dst, ip))) ||
    (isAnyLink && src !== undefined && ips.some((ip) => holds(src, ip)))
  );
}

/** Looks how Services are done on this node, and whether leftovers of another way are there. */
export const KUBE_PROXY_CHECK: Check = {
  id: 'kube-proxy',
  looksAt: 'Services are done in one way: iptables, ipvs, nftables or Cilium',
  finds: ['kube-proxy-mode'],
  judge: ({ node, iptables }) =>
    whenKnown(iptables, (facts) => {
      const nft = nftObjects(node);
      if (facts.nft.kind === 'unknown' && node.host.nft.kind === 'unknown') return skipped(facts.nft.why);
      const { chains, rules } = findIptablesRules(facts, nft);
      const has = (prefix: string) => rules.some(({ chain }) => chain.startsWith(prefix));
      const ipvs = node.host.links.find(({ ifname }) => ifname === 'kube-ipvs0');
      const isServed = node.host.addresses.some(({ ifindex }) => ifindex === ipvs?.ifindex);
      const ways = [
        ...(has('KUBE-SVC-') ? ['iptables (chains KUBE-SVC-…)'] : []),
        ...(ipvs !== undefined && isServed ? ['ipvs (addresses on kube-ipvs0)'] : []),
        ...(nft.some((object) => isTable(object, 'kube-proxy')) ? ['nftables (table kube-proxy)'] : []),
        ...(chains.some(({ chain }) => chain.startsWith('CILIUM_')) ? ['Cilium (chains CILIUM_…)'] : []),
      ];
      const proxies = ways.filter((way) => !way.startsWith('Cilium'));
      if (proxies.length < 2) return done([], [ways.length === 0 ? 'no kube-proxy is to be seen' : ways.join(', ')]);
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
