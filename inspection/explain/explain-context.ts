import type { Supply } from '../../agent/journal/supply.ts';
import { eniMark } from '../../dataplane/eni-mark.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import type { EniNetwork, NodeNetwork, RuleMode } from '../../dataplane/network.ts';
import {
  DEFAULT_ENI_MARK_MASK,
  DIRECT_LINK_GROUP,
  PRIORITY,
  RTPROT_TKE_ENI,
  TABLE_POD_ROUTES,
} from '../../dataplane/numbers.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { RT_SCOPE_UNIVERSE } from '../../netlink/uapi/rtnetlink.ts';
import { type EniFacts, findEnis } from '../node/find-enis.ts';
import { joinPods, type NodePod } from '../node/join-pods.ts';
import { ifKnown } from '../node/known.ts';
import type { Known, NodeFacts } from '../node/node-facts.ts';
import { evaluatePacketMark } from './evaluate-packet-mark.ts';
import { type BridgeView, bridgeViewOf, type GrView, grViewOf } from './gr-view.ts';
import type { KernelLookup, ReadFollowedFlows } from './kernel-answer.ts';

/** A Pod interface, with its links and its ENI. */
export type ExplainedPod = NodePod & {
  /** False when another main plugin wired the Pod and got only the address from tke-eni. */
  readonly isOurs: boolean;
  /** True when a whole ENI is inside the Pod. Its veth pair then only serves the node and Services. */
  readonly hasOwnEni: boolean;
  /** Host end of the veth pair, of one that another plugin created too. */
  readonly veth: LinkMessage | undefined;
  readonly eni: ExplainedEni | undefined;
  /** Set for a GlobalRoute Pod, which has no ENI. */
  readonly gr?: GrView;
};

/** An ENI, by the agent's record and the kernel. */
export type ExplainedEni = EniFacts & {
  /** The ENI as the agent last planned it; undefined without the agent's record. */
  readonly network: EniNetwork | undefined;
  /** Packet mark of its Pods; 0 when the slot is not known. */
  readonly mark: number;
  /** 'eni-1 (eth1)'. */
  readonly title: string;
  /** Primary addresses that are missing on its link. */
  readonly missing: readonly string[];
};

/** Everything that an explanation is built from, joined once. */
export type ExplainContext = {
  readonly facts: NodeFacts;
  readonly pods: readonly ExplainedPod[];
  readonly enis: readonly ExplainedEni[];
  /** The bridge of GlobalRoute Pods. */
  readonly bridge: BridgeView;
  readonly node: NodeNetwork | undefined;
  readonly ruleMode: RuleMode;
  readonly mask: number;
  readonly supply: Supply | undefined;
  /**
   * The nftables table of tke-eni as planned, in the format of the installed nft; unknown without the agent's record.
   */
  readonly plannedNft: Known<string>;
  readonly lookup: KernelLookup;
  readonly readFlows: ReadFollowedFlows;
};

/** Asks the kernel, at the moment of the question. */
type KernelQuestions = Pick<ExplainContext, 'lookup' | 'readFlows'>;

/** Joins the facts: Pods with their links and ENIs, and the rule mode of this node. */
export function buildExplainContext(
  facts: NodeFacts,
  plannedNft: Known<string>,
  { lookup, readFlows }: KernelQuestions,
): ExplainContext {
  const agent = ifKnown(facts.agent);
  const record = agent === undefined ? undefined : ifKnown(agent.node);
  const mask = record?.node.eniMarkMask ?? maskOfRules(facts) ?? DEFAULT_ENI_MARK_MASK;
  const enis = findEnis(facts.host, facts.agent).map((eni): ExplainedEni => {
    const network = record?.enis.find(({ table }) => table === eni.table);
    const name = eni.eniId ?? `ENI of table ${eni.table}`;
    const title = eni.ifname === undefined ? name : `${name} (${eni.ifname})`;
    const present = facts.host.addresses.filter(({ ifindex }) => ifindex === eni.ifindex);
    const missing = eni.addresses.filter((ip) => !present.some((message) => ownAddress(message) === ip));
    const mark = eni.slot === undefined ? markByNft(facts, eni.table, mask) : eniMark(eni.slot, mask);
    return { ...eni, network, title, missing, mark };
  });
  const bridge = bridgeViewOf(facts.host, record?.node);
  return {
    facts,
    enis,
    bridge,
    mask,
    plannedNft,
    lookup,
    readFlows,
    node: record?.node,
    ruleMode: agent?.journal.ruleMode ?? record?.node.ruleMode ?? ruleModeOfRules(facts),
    supply: agent?.journal.supply,
    pods: joinPods(facts).map((pod) => podView(facts, { enis, bridge, node: record?.node }, pod)),
  };
}

function podView(
  facts: NodeFacts,
  { enis, bridge, node }: Pick<ExplainContext, 'enis' | 'bridge' | 'node'>,
  pod: NodePod,
): ExplainedPod {
  const { lease, podLink, ips } = pod;
  const isOurs = lease?.plugin !== 'ipam';
  // A pair that another plugin created is only known by the Pod's end.
  const veth = isOurs
    ? pod.hostLink
    : facts.host.links.find(({ ifindex, kind }) => ifindex === podLink?.link && kind === 'veth');
  // Without a lease the link group identifies the ENI; in per-pod mode, the rule for the Pod's address does.
  const table = veth?.group === 0 || veth === undefined ? tableOfRules(facts, ips) : veth.group;
  const eni = enis.find((each) => (lease === undefined ? each.table === table : each.eniId === lease.eniId));
  const hasOwnEni = lease === undefined ? veth?.group === DIRECT_LINK_GROUP : lease.plugin === 'direct-eni';
  const gr = grViewOf(lease, { veth, ips }, bridge, node);
  return { ...pod, isOurs, hasOwnEni, veth, eni, ...(gr === undefined ? {} : { gr }) };
}

function tableOfRules({ host }: NodeFacts, ips: readonly string[]): number | undefined {
  return host.rules.find(
    ({ priority, src }) => priority === PRIORITY.fromPod && src !== undefined && ips.includes(src.split('/')[0] ?? ''),
  )?.table;
}

function maskOfRules({ host }: NodeFacts): number | undefined {
  return ourRules(host).find(({ priority, fwmask }) => priority === PRIORITY.eniMark && fwmask !== undefined)?.fwmask;
}

/**
 * Returns the mark that the nftables table gives to the ENI's link group: for nodes without a record and without the
 * ENI's rule.
 */
function markByNft({ host }: NodeFacts, table: number, mask: number): number {
  if (host.nft.kind === 'unknown') return 0;
  const packet = {
    family: 4,
    src: '0.0.0.0',
    dst: '0.0.0.0',
    iifname: '',
    iifgroup: table,
    mark: 0,
    ctMark: 0,
  } as const;
  const state = { direction: 'original', isSourceRouted: true, isLocal: false } as const;
  return (evaluatePacketMark(host.nft.value.objects, { ...packet, ...state }).mark & mask) >>> 0;
}

/** Guesses the rule mode without a record: a rule for one source address means per-pod, anything else the default. */
function ruleModeOfRules({ host }: NodeFacts): RuleMode {
  const ours = ourRules(host);
  const hasPodTable = ours.some(({ table }) => table === TABLE_POD_ROUTES);
  return !hasPodTable && ours.some(({ priority, src }) => priority === PRIORITY.fromPod && src !== undefined)
    ? 'per-pod'
    : 'compact';
}

function ourRules(host: NodeFacts['host']): NodeFacts['host']['rules'] {
  return host.rules.filter(({ protocol }) => protocol === RTPROT_TKE_ENI);
}

/** Returns the Pod of this node that has an address. */
export function podOfIp(context: ExplainContext, ip: string): ExplainedPod | undefined {
  return context.pods.find(({ ips }) => ips.includes(ip));
}

/** Returns addresses of the host's namespace that other machines may reach; those of loopback are left out. */
export function nodeAddresses({ facts, node }: ExplainContext, family: 4 | 6): readonly string[] {
  const recorded = node?.primary.addresses ?? [];
  const all = facts.host.addresses.filter(({ scope }) => scope === RT_SCOPE_UNIVERSE).map(ownAddress);
  return [...new Set([...recorded, ...all])].filter((ip) => familyOf(ip) === family && all.includes(ip));
}

/** Returns the name of a link of the host by its index. */
export function linkName(links: readonly LinkMessage[], ifindex: number | undefined): string {
  return links.find((link) => link.ifindex === ifindex)?.ifname ?? `if${ifindex ?? 0}`;
}
