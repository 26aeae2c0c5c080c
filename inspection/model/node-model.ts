import type { Supply, SupplyEni } from '../../agent/journal/supply.ts';
import { eniMark } from '../../dataplane/eni-mark.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import type { EniNetwork, NodeNetwork, RuleMode } from '../../dataplane/network.ts';
import {
  DEFAULT_ENI_MARK_MASK,
  DIRECT_LINK_GROUP,
  NODEPORT_MARK,
  PRIORITY,
  RTPROT_TKE_ENI,
  TABLE_CONNECTED,
  TABLE_ENI_BASE,
  TABLE_MAIN,
  TABLE_POD_ROUTES,
  TABLE_PODLESS,
} from '../../dataplane/numbers.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import { RT_SCOPE_UNIVERSE, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { evaluatePacketMark } from '../firewall/evaluate-packet-mark.ts';
import { type EniFacts, findEnis } from '../node/find-enis.ts';
import { joinPods, type NodePod } from '../node/join-pods.ts';
import { ifKnown } from '../node/known.ts';
import type { HostFacts, NodeFacts } from '../node/node-facts.ts';
import { type BridgeView, bridgeViewOf, type GrView, grViewOf } from './gr-view.ts';

/** A Pod interface, with its links and its ENI. */
export type ModelPod = NodePod & {
  /** False when another main plugin wired the Pod and got only the address from tke-eni. */
  readonly isOurs: boolean;
  /** True when a whole ENI is inside the Pod. Its veth pair then only serves the node and Services. */
  readonly hasOwnEni: boolean;
  /** Host end of the veth pair, of one that another plugin created too. */
  readonly veth: LinkMessage | undefined;
  readonly eni: ModelEni | undefined;
  /** Table of its ENI, also where only the link group says it. */
  readonly eniTable: number | undefined;
  /** Set for a GlobalRoute Pod, which has no ENI. */
  readonly gr?: GrView;
};

/** An ENI, by the agent's record and the kernel. */
export type ModelEni = EniFacts & {
  /** The ENI as the agent last planned it; undefined without the agent's record. */
  readonly network: EniNetwork | undefined;
  readonly supplied: SupplyEni | undefined;
  /** Packet mark of its Pods; 0 when the slot is not known. */
  readonly mark: number;
  /** 'eni-1 (eth1)'. */
  readonly title: string;
  /** 'ENI eni-1 (eth1)', for sentences. */
  readonly name: string;
  /** Primary addresses that are missing on its link. */
  readonly missing: readonly string[];
};

/** A node as people speak of it, from what was read, joined once. The agent's record names what the kernel has. */
export type NodeModel = {
  readonly facts: NodeFacts;
  readonly pods: readonly ModelPod[];
  readonly enis: readonly ModelEni[];
  /** Link of the node's own default route. */
  readonly primary: LinkMessage | undefined;
  /** The bridge of GlobalRoute Pods. */
  readonly bridge: BridgeView;
  /** The node as the agent recorded it. */
  readonly node: NodeNetwork | undefined;
  /** Guessed from the rules where no record says it. */
  readonly ruleMode: RuleMode;
  /** Address families that Pods have or can get. */
  readonly families: ReadonlySet<4 | 6>;
  /** Bits of the packet mark that say the ENI. */
  readonly mask: number;
  /** All bits of the packet mark that we use. */
  readonly markBits: number;
  /** Routing tables that belong to us alone. */
  readonly tables: ReadonlySet<number>;
  readonly supply: Supply | undefined;
  /** Returns the name of a link of the host. */
  nameOf(ifindex: number): string;
};

/** Joins the facts of a node: Pods with their links and ENIs, and the rule mode of this node. */
export function buildNodeModel(facts: NodeFacts): NodeModel {
  const { host } = facts;
  const agent = ifKnown(facts.agent);
  const record = agent === undefined ? undefined : ifKnown(agent.node);
  const node = record?.node;
  const supply = agent?.journal.supply;
  const recordedMode = agent?.journal.ruleMode ?? node?.ruleMode;
  const mask = node?.eniMarkMask ?? maskOfRules(host) ?? DEFAULT_ENI_MARK_MASK;
  const enis = findEnis(host, facts.agent).map((eni): ModelEni => {
    const network = record?.enis.find(({ table }) => table === eni.table);
    const supplied = supply?.enis.find(({ eniId }) => eniId === eni.eniId);
    const id = eni.eniId ?? `ENI of table ${eni.table}`;
    const title = eni.ifname === undefined ? id : `${id} (${eni.ifname})`;
    const name = eni.eniId === undefined ? title : `ENI ${title}`;
    const present = host.addresses.filter(({ ifindex }) => ifindex === eni.ifindex).map(ownAddress);
    const missing = eni.addresses.filter((ip) => !present.includes(ip));
    const mark = eni.slot === undefined ? markByNft(host, eni.table, mask) : eniMark(eni.slot, mask);
    return { ...eni, network, supplied, title, name, missing, mark };
  });
  const bridge = bridgeViewOf(host, node);
  const pods = joinPods(facts).map((pod) => modelPod(facts, { enis, bridge, node }, pod));
  const supplied = supply?.enis.flatMap(({ primary, addresses }) => [...primary, ...addresses]) ?? [];
  const links = new Map(host.links.map((link) => [link.ifindex, link]));
  // Rules of the mode per-pod match no mark of an ENI.
  const ofEnis = recordedMode === 'per-pod' ? 0 : mask;
  return {
    ...{ facts, pods, enis, bridge, node, mask, supply },
    primary: links.get(primaryIfindex(facts, node, new Set(enis.map(({ ifindex }) => ifindex))) ?? 0),
    ruleMode: recordedMode ?? ruleModeOfRules(host),
    families: new Set([...supplied.map(({ ip }) => ip), ...pods.flatMap(({ ips }) => ips)].map(familyOf)),
    markBits: (ofEnis | NODEPORT_MARK) >>> 0,
    tables: new Set([TABLE_POD_ROUTES, TABLE_PODLESS, TABLE_CONNECTED, ...enis.map(({ table }) => table)]),
    nameOf: (ifindex) => links.get(ifindex)?.ifname ?? `if${ifindex}`,
  };
}

function modelPod(
  facts: NodeFacts,
  { enis, bridge, node }: Pick<NodeModel, 'enis' | 'bridge' | 'node'>,
  pod: NodePod,
): ModelPod {
  const { lease, podLink, hostLink, ips } = pod;
  const isOurs = lease?.plugin !== 'ipam';
  // A pair that another plugin created is only known by the Pod's end.
  const veth = isOurs
    ? hostLink
    : facts.host.links.find(({ ifindex, kind }) => ifindex === podLink?.link && kind === 'veth');
  // Without a lease the link group identifies the ENI; in per-pod mode, the rule for the Pod's address does.
  const table = veth?.group === 0 || veth === undefined ? tableOfRules(facts, ips) : veth.group;
  const eni = enis.find((each) => (lease === undefined ? each.table === table : each.eniId === lease.eniId));
  const group = hostLink !== undefined && hostLink.group > TABLE_ENI_BASE ? hostLink.group : undefined;
  const hasOwnEni = lease === undefined ? veth?.group === DIRECT_LINK_GROUP : lease.plugin === 'direct-eni';
  const gr = grViewOf(pod, veth, bridge, node);
  const eniTable = (lease === undefined ? undefined : eni?.table) ?? group;
  return { ...pod, isOurs, hasOwnEni, veth, eni, eniTable, ...(gr === undefined ? {} : { gr }) };
}

/**
 * Returns the index of the primary interface: as the agent recorded it, else of the default route with the lowest
 * metric that does not leave by an ENI.
 */
function primaryIfindex(
  facts: NodeFacts,
  node: NodeNetwork | undefined,
  enis: ReadonlySet<number | undefined>,
): number | undefined {
  const named = facts.host.links.find(({ ifname }) => ifname === node?.primary.ifname);
  if (named !== undefined) return named.ifindex;
  const [best] = defaultRoutes(facts)
    .filter(({ oif }) => !enis.has(oif))
    .toSorted((a, b) => a.family - b.family || (a.priority ?? 0) - (b.priority ?? 0));
  return best?.oif;
}

/** Returns the default routes of the main table that have an outgoing interface, both families. */
export function defaultRoutes({ host }: Pick<NodeFacts, 'host'>): readonly RouteMessage[] {
  return host.routes.filter(
    ({ table, dst, oif, type }) =>
      table === TABLE_MAIN && dst === undefined && oif !== undefined && type === RTN_UNICAST,
  );
}

function tableOfRules({ host }: NodeFacts, ips: readonly string[]): number | undefined {
  return host.rules.find(
    ({ priority, src }) => priority === PRIORITY.fromPod && src !== undefined && ips.includes(src.split('/')[0] ?? ''),
  )?.table;
}

function maskOfRules(host: HostFacts): number | undefined {
  return ourRules(host).find(({ fwmask }) => fwmask !== undefined && fwmask !== NODEPORT_MARK)?.fwmask;
}

/**
 * Returns the mark that the nftables table gives to the ENI's link group: for nodes without a record and without the
 * ENI's rule.
 */
function markByNft({ nft }: HostFacts, table: number, mask: number): number {
  if (nft.kind === 'unknown') return 0;
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
  return (evaluatePacketMark(nft.value.objects, { ...packet, ...state }).mark & mask) >>> 0;
}

/** Guesses the rule mode without a record: a rule for one source address means per-pod, anything else the default. */
function ruleModeOfRules(host: HostFacts): RuleMode {
  const ours = ourRules(host);
  const hasPodTable = ours.some(({ table }) => table === TABLE_POD_ROUTES);
  return !hasPodTable && ours.some(({ priority, src }) => priority === PRIORITY.fromPod && src !== undefined)
    ? 'per-pod'
    : 'compact';
}

function ourRules(host: HostFacts): HostFacts['rules'] {
  return host.rules.filter(({ protocol }) => protocol === RTPROT_TKE_ENI);
}

/** Returns the Pod of this node that has an address. */
export function podOfIp({ pods }: NodeModel, ip: string): ModelPod | undefined {
  return pods.find(({ ips }) => ips.includes(ip));
}

/** Returns addresses of the host's namespace that other machines may reach; those of loopback are left out. */
export function nodeAddresses({ facts, node }: NodeModel, family: 4 | 6): readonly string[] {
  const recorded = node?.primary.addresses ?? [];
  const all = facts.host.addresses.filter(({ scope }) => scope === RT_SCOPE_UNIVERSE).map(ownAddress);
  return [...new Set([...recorded, ...all])].filter((ip) => familyOf(ip) === family && all.includes(ip));
}

/** Returns the name of a link of the host by its index. */
export function linkName(links: readonly LinkMessage[], ifindex: number | undefined): string {
  return links.find((link) => link.ifindex === ifindex)?.ifname ?? `if${ifindex ?? 0}`;
}
