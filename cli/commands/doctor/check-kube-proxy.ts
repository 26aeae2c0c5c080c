import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { parseNftChains } from '../../../inspection/firewall/parse-nft-chains.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { type IptablesRules, parseIptablesRules } from '../../../inspection/node/parse-iptables-rules.ts';
import { prefixContains } from '../../../inspection/node/prefix-contains.ts';
import { recordOf } from '../../../runtime/json.ts';
import { buildOutline } from './build-outline.ts';
import { type Check, done, skipped, whenKnown } from './check.ts';
import { findSourcePrefixes, type SourcePrefix } from './find-source-prefixes.ts';

/**
 * Checks which program implements Services on this node, whether rules of another mode are left over, and whether
 * kube-proxy takes hosts of the VPC for Pods of this node.
 */
export const KUBE_PROXY_CHECK: Check = {
  id: 'kube-proxy',
  scope: 'Services are done in one way, and no host of the VPC is taken for a Pod',
  finds: ['kube-proxy-mode', 'kube-proxy-cluster-cidr'],
  evaluate: ({ node, iptables }) =>
    whenKnown(iptables, (facts) => {
      const nft = node.host.nft.kind === 'known' ? node.host.nft.value.objects : [];
      if (facts.nft.kind === 'unknown' && node.host.nft.kind === 'unknown') return skipped(facts.nft.why);
      const found = parseIptablesRules(facts, nft);
      const ways = waysOf(node, found, nft);
      const sources = findSourcePrefixes(found.rules, parseNftChains(nft));
      const notes = [
        ways.length === 0 ? 'no kube-proxy was found' : ways.join(', '),
        ...sources.map(({ prefix }) => `sources in ${prefix} are Pods of this node for kube-proxy`),
      ];
      return done([...leftovers(ways), ...wrongSources(node, sources)], notes);
    }),
};

type NftObjects = readonly Readonly<Record<string, unknown>>[];

function waysOf({ host }: NodeFacts, { chains, rules }: IptablesRules, nft: NftObjects): readonly string[] {
  const ipvs = host.links.find(({ ifname }) => ifname === 'kube-ipvs0');
  const isInUse = host.addresses.some(({ ifindex }) => ifindex === ipvs?.ifindex);
  return [
    ...(rules.some(({ chain }) => chain.startsWith('KUBE-SVC-')) ? ['iptables (chains KUBE-SVC-…)'] : []),
    ...(ipvs !== undefined && isInUse ? ['ipvs (addresses on kube-ipvs0)'] : []),
    ...(nft.some((object) => isTable(object, 'kube-proxy')) ? ['nftables (table kube-proxy)'] : []),
    ...(chains.some(({ chain }) => chain.startsWith('CILIUM_')) ? ['Cilium (chains CILIUM_…)'] : []),
  ];
}

function isTable(object: Readonly<Record<string, unknown>>, name: string): boolean {
  return recordOf(object['table'])['name'] === name;
}

function leftovers(ways: readonly string[]): readonly Finding[] {
  const proxies = ways.filter((way) => !way.startsWith('Cilium'));
  if (proxies.length < 2) return [];
  return [
    finding('kube-proxy-mode', {
      what: `kube-proxy’s rules are there in ${proxies.length} ways: ${proxies.join(', ')}`,
      why: 'The leftovers of an earlier mode translate packets to backends that may be gone: some connections to Services fail.',
      fix: ['kube-proxy --cleanup', 'restart kube-proxy’s Pod of this node'],
      subjects: [],
    }),
  ];
}

/** Finds prefixes that hold an address of the primary interface or of an ENI: the VPC's, so of hosts and of Pods elsewhere. */
function wrongSources(node: NodeFacts, sources: readonly SourcePrefix[]): readonly Finding[] {
  const { primary, enis } = buildOutline(node);
  const own = [primary, ...enis.map(({ link }) => link)].flatMap((link) =>
    node.host.addresses
      .filter(({ ifindex }) => ifindex === link?.ifindex)
      .map((address) => ({ link, ip: address.local ?? address.address ?? '' })),
  );
  return sources.flatMap(({ prefix, isOfLocalPolicy }) => {
    const held = own.find(({ ip }) => prefixContains(prefix, ip));
    if (held?.link === undefined) return [];
    return [
      finding('kube-proxy-cluster-cidr', {
        what: `kube-proxy takes sources in ${prefix} for Pods of this node, and ${held.ip} of ${held.link.ifname} is in it${
          isOfLocalPolicy ? '; a Service with externalTrafficPolicy: Local is concerned' : ''
        }`,
        severity: isOfLocalPolicy ? 'error' : 'warning',
        fix: [
          'kubectl -n kube-system edit configmap kube-proxy     # in config.conf: detectLocalMode: InterfaceNamePrefix, and under detectLocal: interfaceNamePrefix: eni',
          'kubectl -n kube-system rollout restart daemonset/kube-proxy',
        ],
        subjects: [linkId(held.link.ifindex)],
      }),
    ];
  });
}
