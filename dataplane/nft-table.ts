import type { NftTable } from './desired.ts';
import { eniMark, hex } from './eni-mark.ts';
import { canonicalAddress, familyOf, withoutContained } from './ip-prefix.ts';
import type { EniNetwork, NodeNetwork } from './network.ts';
import { CT_STATUS, closingChainLines, learnChainLines, leavingMarkLines, sentChainLines } from './nft-learn-chain.ts';
import { DIRECT_LINK_GROUP, NFT_TABLE, NODEPORT_MARK } from './numbers.ts';

/**
 * Addresses that belong to the cloud whatever the VPC's CIDRs are: metadata, registries, the API server's address;
 * multicast.
 */
export const ALWAYS_VIA_ENI = { 4: ['169.254.0.0/16', '224.0.0.0/4'], 6: ['fe80::/10', 'ff00::/8'] } as const;

const primaryBit = hex(NODEPORT_MARK);

/**
 * Renders the project's nftables table: packets of Pods get the mark of their ENI (by the link group of their veth), and
 * so does what comes in by an ENI; replies go back through the interface that the request came in by; IPv6 sources are
 * checked.
 *
 * The table depends only on the ENIs, never on Pods: a Pod ADD or DEL does not change it. One text, loaded in one
 * transaction.
 * - A map straight into the mark (`meta mark set iifgroup map`) would overwrite other programs' bits, and a mark cannot
 *   be OR-ed with a map: hence one small chain per ENI.
 * - Links and groups are compared one by one, not looked up in a set. Sets go with the transaction that replaces the
 *   table, and packets that are in its old rules then find nothing in them: a packet of an ENI would count as one of a
 *   third link, and its connection's answers would leave by the primary interface (ADR 0112).
 * - It runs at mangle priority (-150): before routing, after connection tracking, before kube-proxy's nat (-100) sets
 *   its own bits.
 * - `ct direction original`, not `ct state new`: connections older than the table are marked as well.
 */
export function nftTable(node: NodeNetwork, enis: readonly EniNetwork[]): NftTable {
  const sorted = [...enis].sort((a, b) => a.table - b.table);
  const named = sorted.filter(({ ifname }) => isNftName(ifname));
  const isMarked = node.ruleMode === 'compact';
  const chains = [
    ...sorted.map((eni) => viaChain(node, eni)),
    ...sorted.map((eni) => eniChain(node, eni, sorted)),
    ...(node.nodePort ? named.map((eni) => fromChain(node, eni)) : []),
    ...(isMarked && named.length > 0 ? [arrivalChain(named)] : []),
    preroutingChain(node, sorted, named),
    ...(sorted.length > 0 ? balancedChains(node) : []),
    ...(named.length > 0 ? [returnedChain(node, named)] : []),
    ...leavingChains(node, sorted),
    ...(node.fastPath === 'bpf' ? learnChains(sorted) : []),
  ];
  const unnamed =
    node.nodePort || isMarked ? sorted.filter((eni) => !named.includes(eni)).map(({ ifname }) => ifname) : [];
  return {
    text: `table inet ${NFT_TABLE} {\n${chains.join('\n')}\n}\n`,
    ...(unnamed.length === 0 ? {} : { unnamed }),
  };
}

/**
 * Reports whether nft(8) reads an interface name literally: its strings have no escapes, and a final `*` would match other
 * names too. With a name that is not UTF-8 in any table, `nft --json list ruleset` of every program ends with an abort.
 */
export function isNftName(ifname: string): boolean {
  return /^[A-Za-z0-9_.@+=-]+$/.test(ifname);
}

/** Links of Pods that another program wires have no programs, and neither have their ENIs. */
function learnChains(enis: readonly EniNetwork[]): readonly string[] {
  const learning = enis.filter(({ podIps }) => podIps === undefined);
  const ifnames = learning.map(({ ifname }) => ifname).filter(isNftName);
  return [
    chain('learn', learnChainLines({ groups: learning.map(({ table }) => table), ifnames })),
    chain('sent', sentChainLines()),
    chain('closing', closingChainLines()),
    chain('leaving', leavingMarkLines()),
  ];
}

function viaChain(node: NodeNetwork, eni: EniNetwork): string {
  return chain(`via_${eni.table}`, [setEniMark(node, eni)]);
}

function eniChain(node: NodeNetwork, eni: EniNetwork, enis: readonly EniNetwork[]): string {
  return chain(`eni_${eni.table}`, [
    // IPv6 has no rp_filter. IPv4 is checked by the rp_filter of the veth, so this line needs no IPv4 part.
    'ip6 saddr != { ::, fe80::/10 } fib saddr . iif oif missing drop',
    ...(node.ruleMode === 'compact' ? [setEniMark(node, eni)] : []),
    ...(node.nodePort
      ? [`ct direction reply ct mark and ${primaryBit} == ${primaryBit} meta mark set meta mark or ${primaryBit}`]
      : []),
    // A connection that came in by an ENI's own address (a NodePort on it) is answered through that ENI.
    ...(node.nodePort && node.ruleMode === 'compact'
      ? [
          `ct direction reply ct mark and ${hex(node.eniMarkMask)} vmap { ${enis.map((via) => viaElement(node, via)).join(', ')} }`,
        ]
      : []),
  ]);
}

/** Connections belong to the link that their packets came in by last: an earlier mark of another link goes. */
function fromChain(node: NodeNetwork, eni: EniNetwork): string {
  return chain(`from_${eni.table}`, [
    `ct direction original ct mark set ${withBits('ct mark', node.eniMarkMask | NODEPORT_MARK, eniMark(eni.slot, node.eniMarkMask))}`,
  ]);
}

/**
 * Marks what comes in by an ENI before any other program asks where it came from: rules lead answers of Pods by this
 * mark, so a check of the way back has to know it. The kernel's own check of IPv4 (`src_valid_mark`) and those of
 * firewalls (`fib saddr . mark . iif`, `rpfilter --validmark`, in raw at the earliest) then find the ENI's table. Without
 * it they depend on the routes of `main`, which are the node's own.
 */
function arrivalChain(enis: readonly EniNetwork[]): string {
  return chain('arrival', [
    'type filter hook prerouting priority raw - 10; policy accept;',
    ...enis.map(({ ifname, table }) => `iifname "${ifname}" goto via_${table}`),
  ]);
}

function preroutingChain(node: NodeNetwork, enis: readonly EniNetwork[], named: readonly EniNetwork[]): string {
  return chain('prerouting', [
    'type filter hook prerouting priority mangle; policy accept;',
    // First and without return: most packets take one of these lines, and Pods' packets match no other one.
    ...enis.map(({ table }) => `iifgroup ${table} goto eni_${table}`),
    ...(node.nodePort
      ? [
          ...named.map(({ ifname, table }) => `iifname "${ifname}" goto from_${table}`),
          ...eachFamily((family) => foreignReplyLines(node, family)),
          // GlobalRoute Pods: everywhere on the node they are asked and answered by the route of their block.
          ...eachFamily((family) => setMatch(family, 'saddr', ofFamily(cidrsOf(node), family), 'return')),
          thirdLinkLine(node, named.length < enis.length),
        ]
      : []),
  ]);
}

/**
 * Returns the chains for packets of Pods that IPVS sends on to an endpoint of a Service. IPVS sends them from the node's output,
 * and looks up their route by the destination alone: they would leave by the primary interface with the Pod's address,
 * which the VPC drops. A chain of type route has the kernel look up the route once more, now by mark and source, when it
 * changes the mark. So the first chain flips a bit of ours and the second flips it back.
 *
 * In compact mode such packets have kept the mark of their ENI. In per-pod mode their source is no address of the node.
 *
 * Copies of `TEE` and `dup to` pass the same hook, with the same mark and source, but connection tracking does not follow
 * them. Another look-up would lead them to where the packet itself went, and it would arrive twice. IPVS leaves its packets
 * tracked where `net.ipv4.vs.conntrack` is 1; kube-proxy sets that.
 * @see ip_vs_nat_xmit in ip_vs_xmit.c, nf_route_table_hook4 in nft_chain_route.c, nf_dup_ipv4 in nf_dup_ipv4.c
 */
function balancedChains(node: NodeNetwork): readonly string[] {
  const isSentOn =
    node.ruleMode === 'compact' ? `meta mark and ${hex(node.eniMarkMask)} != 0x0` : 'fib saddr type != local';
  const flip = `ct state != untracked ${isSentOn} meta mark set meta mark xor ${primaryBit}`;
  // Behind iptables' mangle table, which may change marks too.
  return [
    chain('balanced', ['type filter hook output priority mangle + 1; policy accept;', flip]),
    chain('balanced_route', ['type route hook output priority mangle + 2; policy accept;', flip]),
  ];
}

/**
 * What comes in by an ENI is for the node or for one of its Pods. When the VPC leads an address here that no Pod has, and no route
 * refuses (one that is offered, or on its way to another node), the packet would leave again and come back until its TTL
 * ends. A node port leads elsewhere too, but with another destination.
 */
function returnedChain({ primary }: NodeNetwork, enis: readonly EniNetwork[]): string {
  const names = enis.map(({ ifname }) => `"${ifname}"`);
  return chain('returned', [
    'type filter hook forward priority filter; policy accept;',
    `iifname { ${names.join(', ')} } oifname { "${primary.ifname}", ${names.join(', ')} } ct status and ${hex(CT_STATUS.natDestination)} == 0x0 drop`,
  ]);
}

/**
 * Returns the line for what came in by a link that is neither an ENI nor a Pod's: the primary interface, a bridge of
 * containers, a VPN, another NIC. Main leads its answers, as those of the node itself. Where an ENI has a name that
 * nft(8) cannot hold, all that is not the primary interface could be that ENI.
 */
function thirdLinkLine(node: NodeNetwork, hasUnnamed: boolean): string {
  const by = hasUnnamed ? `iifname "${node.primary.ifname}" ` : '';
  return `${by}ct direction original ct mark set ${withBits('ct mark', node.eniMarkMask, NODEPORT_MARK)}`;
}

/**
 * Returns the line for Pods with foreign links (tke-eni-ipamc under ptp or bridge), which have no group. The source is
 * asked for, as answers of other programs' Pods and containers are theirs to route.
 */
function foreignReplyLines(node: NodeNetwork, family: 4 | 6): readonly string[] {
  const ofVpc = withoutContained(ofFamily(node.vpcCidrs, family));
  if (ofVpc.length === 0) return [];
  const source = `${family === 4 ? 'ip' : 'ip6'} saddr { ${ofVpc.join(', ')} }`;
  return [
    `iifname != "${node.primary.ifname}" ${source} ct direction reply ct mark and ${primaryBit} == ${primaryBit} meta mark set meta mark or ${primaryBit}`,
  ];
}

/** Returns the chains for packets of Pods that leave by the primary interface with the node's address. */
function leavingChains(node: NodeNetwork, enis: readonly EniNetwork[]): readonly string[] {
  const hasEgress = node.egress === 'node' && enis.length > 0;
  const hasExclusive = node.hasDirect === true;
  const masquerade = masqueradeLines(node);
  const isMarked = hasEgress || hasExclusive;
  if (!isMarked && masquerade.length === 0) return [];
  const groups = enis.map((eni) => eni.table).join(', ');
  const routed = () =>
    chain('routed', [
      'type filter hook prerouting priority dstnat + 10; policy accept;',
      ...(hasEgress ? [`iifgroup { ${groups} } ct direction original fib daddr type != local jump egress`] : []),
      // What a Pod with an exclusive ENI sends to the node is for Services and link-local addresses. When the backend
      // is on another node, the VPC would drop packets with the Pod's address on the primary interface, and the reply
      // would not come back this way.
      ...(hasExclusive
        ? [
            `iifgroup ${DIRECT_LINK_GROUP} ct direction original fib daddr type != local meta mark set meta mark or ${primaryBit}`,
          ]
        : []),
    ]);
  return [
    ...(hasEgress ? [egressChain(node)] : []),
    ...(isMarked ? [routed()] : []),
    chain('postrouting', [
      'type nat hook postrouting priority srcnat; policy accept;',
      // In the original direction only the chains above set this bit: a NodePort request has the mark on its
      // connection, not on the packet.
      ...(isMarked
        ? [
            `oifname "${node.primary.ifname}" ct direction original meta mark and ${primaryBit} == ${primaryBit} masquerade`,
          ]
        : []),
      ...masquerade,
      ...(hasExclusive ? eachFamily((family) => exclusiveBackLines(node, family)) : []),
    ]),
  ];
}

/**
 * Returns the lines that make replies come back through the node. A Pod with an exclusive ENI answers all but the node
 * through its ENI. The reply must come back here when a request went through DNAT on the node and came from another such
 * Pod, or came in by a link that is no ENI. So the request gets the node's address as its source.
 */
function exclusiveBackLines(node: NodeNetwork, family: 4 | 6): readonly string[] {
  const [own] = node.primary.addresses.filter((ip) => familyOf(ip) === family && !ip.toLowerCase().startsWith('fe80:'));
  if (own === undefined) return [];
  const toExclusive = `meta nfproto ipv${family} oifgroup ${DIRECT_LINK_GROUP} ct direction original`;
  const ip = family === 4 ? 'ip' : 'ip6';
  const snat = `snat ${ip} to ${canonicalAddress(own)}`;
  return [
    `${toExclusive} ct status dnat meta mark and ${primaryBit} == ${primaryBit} ${snat}`,
    ...(node.nodePort
      ? [
          `${toExclusive} ct status dnat ct mark and ${primaryBit} == ${primaryBit} ${snat}`,
          // From a network of the node alone, which the VPC does not know.
          `${toExclusive} ${ip} saddr != { ${stayingCidrs(node, family).join(', ')} } ct mark and ${primaryBit} == ${primaryBit} ${snat}`,
        ]
      : []),
  ];
}

/**
 * Renders the chain of `--egress=node`: packets of Pods to addresses outside the VPC leave by the primary interface
 * with the node's address.
 *
 * The destination decides, and it must be the one after DNAT: a ClusterIP is in no VPC CIDR, but its backend may be. So
 * the mark is set at dstnat + 10, after kube-proxy and before routing. It is the NodePort bit, whose rule (1280, lookup
 * main) precedes the ENI's in both rule modes. Under IPVS the ClusterIP is a local address and is not changed here.
 * Only the original direction: replies to a client that came in by an ENI (CLB, EIP) must leave by that ENI.
 */
function egressChain(node: NodeNetwork): string {
  const exempt = (node.egressExempt ?? []).map(canonicalAddress).sort();
  return chain('egress', [
    ...eachFamily((family) => setMatch(family, 'saddr', ofFamily(exempt, family), 'return')),
    ...eachFamily((family) => setMatch(family, 'daddr', stayingCidrs(node, family), 'return')),
    `meta mark set meta mark or ${primaryBit}`,
  ]);
}

function stayingCidrs(node: NodeNetwork, family: 4 | 6): readonly string[] {
  return withoutContained(ofFamily([...node.vpcCidrs, ...cidrsOf(node), ...ALWAYS_VIA_ENI[family]], family));
}

/** Returns the lines that give GlobalRoute Pods the primary interface's address where the VPC has no route back to them. */
function masqueradeLines(node: NodeNetwork): readonly string[] {
  const { bridge, primary } = node;
  const own = withoutContained(cidrsOf(node).filter((cidr) => familyOf(cidr) === 4));
  if (bridge?.masquerade === undefined || own.length === 0) return [];
  const exempt = withoutContained([...own, ...bridge.masquerade.exempt].filter((cidr) => familyOf(cidr) === 4));
  return [`oifname "${primary.ifname}" ip saddr { ${own.join(', ')} } ip daddr != { ${exempt.join(', ')} } masquerade`];
}

function cidrsOf({ podCidrs }: NodeNetwork): readonly string[] {
  return podCidrs.map(({ cidr }) => cidr);
}

function ofFamily(cidrs: readonly string[], family: 4 | 6): readonly string[] {
  return cidrs.filter((cidr) => familyOf(cidr) === family);
}

function eachFamily(of: (family: 4 | 6) => readonly string[]): readonly string[] {
  return [...of(4), ...of(6)];
}

function setMatch(family: 4 | 6, field: string, elements: readonly string[], verdict: string): readonly string[] {
  return elements.length === 0 ? [] : [`${family === 4 ? 'ip' : 'ip6'} ${field} { ${elements.join(', ')} } ${verdict}`];
}

function setEniMark(node: NodeNetwork, eni: EniNetwork): string {
  return `meta mark set ${withBits('meta mark', node.eniMarkMask, eniMark(eni.slot, node.eniMarkMask))}`;
}

function withBits(mark: 'meta mark' | 'ct mark', mask: number, bits: number): string {
  return `${mark} and ${hex(~mask)} or ${hex(bits)}`;
}

function viaElement(node: NodeNetwork, eni: EniNetwork): string {
  return `${hex(eniMark(eni.slot, node.eniMarkMask))} : jump via_${eni.table}`;
}

// One statement a line and a line break before each closing brace: nft 1.0.6 requires it.
function chain(name: string, lines: readonly string[]): string {
  return [` chain ${name} {`, ...lines.map((line) => `  ${line}`), ' }'].join('\n');
}
