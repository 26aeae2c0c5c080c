import type { NftChain } from '../../../inspection/firewall/parse-nft-chains.ts';
import type { IptablesRule } from '../../../inspection/node/parse-iptables-rules.ts';
import { recordOf } from '../../../runtime/json.ts';

/** A prefix of source addresses that kube-proxy takes for Pods of this node. */
export type SourcePrefix = {
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
export function findSourcePrefixes(
  rules: readonly IptablesRule[],
  chains: readonly NftChain[],
): readonly SourcePrefix[] {
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
