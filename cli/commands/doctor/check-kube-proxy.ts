import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { type NftChain, parseNftChains } from '../../../inspection/firewall/parse-nft-chains.ts';
import type { NodeModel } from '../../../inspection/model/node-model.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import {
  type IptablesRule,
  type IptablesRules,
  parseIptablesRules,
} from '../../../inspection/node/parse-iptables-rules.ts';
import { prefixContains } from '../../../inspection/node/prefix-contains.ts';
import { ownAddress } from '../../../netlink/address-message.ts';
import { recordOf } from '../../../runtime/json.ts';
import { type Check, done, skipped, whenKnown } from './check.ts';

/**
 * Checks which program implements Services on this node, whether rules of another mode are left over, and whether
 * kube-proxy takes hosts of the VPC for Pods of this node.
 */
export const KUBE_PROXY_CHECK: Check = {
  id: 'kube-proxy',
  scope: 'Services are done in one way, and no host of the VPC is taken for a Pod',
  finds: ['kube-proxy-mode', 'kube-proxy-cluster-cidr'],
  evaluate: ({ node, model, iptables }) =>
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
      return done([...leftovers(ways), ...wrongSources(model, sources)], notes);
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
function wrongSources({ facts, primary, enis }: NodeModel, sources: readonly SourcePrefix[]): readonly Finding[] {
  const own = [primary, ...enis.map(({ link }) => link)].flatMap((link) =>
    facts.host.addresses
      .filter(({ ifindex }) => ifindex === link?.ifindex)
      .map((address) => ({ link, ip: ownAddress(address) })),
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

/** A prefix of source addresses that kube-proxy takes for Pods of this node. */
type SourcePrefix = {
  /** `10.0.0.0/16` */
  readonly prefix: string;
  /** True where a Service with `externalTrafficPolicy: Local` uses it: such sources reach Pods of every node. */
  readonly isOfLocalPolicy: boolean;
};

/**
 * Finds by which source addresses kube-proxy tells Pods of this node from others, in its rules of iptables and of nftables:
 * what it got as `--cluster-cidr`, with `detectLocalMode: ClusterCIDR`. Each prefix once.
 * @see pkg/proxy/iptables/proxier.go, pkg/proxy/nftables/proxier.go of Kubernetes
 */
function findSourcePrefixes(rules: readonly IptablesRule[], chains: readonly NftChain[]): readonly SourcePrefix[] {
  const all = [...rules.flatMap(ofIptables), ...chains.flatMap(ofNft)];
  const byPrefix = Map.groupBy(all, ({ prefix }) => prefix);
  return [...byPrefix].map(([prefix, found]) => ({
    prefix,
    isOfLocalPolicy: found.some(({ isOfLocalPolicy }) => isOfLocalPolicy),
  }));
}

/** Of Services asked from outside, only those of policy Local have a rule for sources that are Pods. */
const EXTERNAL_CHAIN = /^(KUBE-EXT-|external-)/;
/** The rule of the cluster address: other sources are masqueraded. Newer versions have one in `services` for all of them. */
const SERVICE_CHAIN = /^(KUBE-SVC-|service-|services$)/;

function ofIptables({ table, chain, args }: IptablesRule): readonly SourcePrefix[] {
  const at = args.indexOf('-s');
  const prefix = args[at + 1];
  if (table !== 'nat' || at < 0 || prefix === undefined) return [];
  return prefixOf(chain, prefix, args[at - 1] === '!');
}

function ofNft({ table, name, rules }: NftChain): readonly SourcePrefix[] {
  if (table !== 'kube-proxy' && table !== 'nat') return [];
  return rules.flat().flatMap((statement) => {
    const { op, left, right } = recordOf(recordOf(statement)['match']);
    const { addr, len } = recordOf(recordOf(right)['prefix']);
    const isSource = recordOf(recordOf(left)['payload'])['field'] === 'saddr' && typeof addr === 'string';
    return isSource ? prefixOf(name, `${addr}/${String(len)}`, op === '!=') : [];
  });
}

function prefixOf(chain: string, prefix: string, isNegated: boolean): readonly SourcePrefix[] {
  const isOfLocalPolicy = EXTERNAL_CHAIN.test(chain);
  const isPods = isNegated ? SERVICE_CHAIN.test(chain) : isOfLocalPolicy;
  return isPods ? [{ prefix, isOfLocalPolicy }] : [];
}
