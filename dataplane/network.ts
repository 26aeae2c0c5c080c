import type { Family } from './ip-prefix.ts';

/** The layout of the rules that route a Pod's packets to its ENI. */
export type RuleMode = 'compact' | 'per-pod';

/** What a plan needs of the node. Everything that differs between nodes is in here. */
export type NodeNetwork = {
  readonly ruleMode: RuleMode;
  /** At least 8 bits in a row. */
  readonly eniMarkMask: number;
  /**
   * `loose`: 2 on the ENIs and the primary, `all` unchanged. `product`: 0 on these and on `all`. Pod veths are strict
   * in both.
   */
  readonly rpFilterMode: 'loose' | 'product';
  /**
   * Where packets to addresses outside the VPC leave: by the Pod's ENI, or by the primary interface with the node's
   * address.
   */
  readonly egress: 'eni' | 'node';
  readonly primary: { readonly ifindex: number; readonly ifname: string; readonly addresses: readonly string[] };
  /** The blocks of the node's GlobalRoute Pods: the present one and those that Pods still live in; empty without them. */
  readonly podCidrs: readonly PodCidr[];
  /** Absent: this node's GlobalRoute Pods, if any, are wired by another program. */
  readonly bridge?: BridgeNetwork;
  readonly families: readonly Family[];
  /**
   * Addresses of this node's ENIs for its Pods, whether a Pod has one now or not. Left out is what another node
   * may have at any moment, because it is offered for release, and what another program keeps the rules of. Default none.
   */
  readonly assignedIps?: readonly string[];
  /** Whether replies of NodePort connections are routed back through the interface that the connection came in by. */
  readonly nodePort: boolean;
  /** With `egress: 'node'`: destinations that still leave by the ENI. */
  readonly vpcCidrs: readonly string[];
  /** With `egress: 'node'`: addresses of Pods with an EIP of their own; these always leave by their ENI. */
  readonly egressExempt?: readonly string[];
  /**
   * Whether the node has exclusive ENIs. Then packets that their Pods send over the side link are routed too. Default
   * false.
   */
  readonly hasDirect?: boolean;
  /** CIDRs of Services, which Pods with an exclusive ENI reach through the node. Default none. */
  readonly serviceCidrs?: readonly string[];
  /**
   * False where nftables is missing: no table is planned, IPv6 spoofing is not blocked and NodePort replies are not
   * routed. Default true.
   */
  readonly nftables?: boolean;
  /**
   * Networks that the node alone is connected to, by links that are neither its primary interface nor an ENI nor a
   * Pod's. Packets to them leave by those links. Default none.
   */
  readonly connected?: readonly ConnectedNetwork[];
  /**
   * What forwards packets of flows that the kernel decided on before. `bpf`: the two programs on shared ENIs and the links
   * of their Pods. Absent: the kernel decides for each packet.
   */
  readonly fastPath?: FastPath;
};

/** The ways to forward a known flow without asking the kernel again. */
type FastPath = 'bpf' | 'flowtable';

/** A network that a link of the node leads to without a gateway. */
export type ConnectedNetwork = {
  readonly cidr: string;
  readonly ifindex: number;
  readonly ifname: string;
  /** The source that the node itself has in it. */
  readonly prefsrc?: string;
};

/** A block of addresses of the node's GlobalRoute Pods. */
export type PodCidr = {
  /** With host bits zero. */
  readonly cidr: string;
  /** The first address of the block. */
  readonly gateway: string;
  /** False for a block that was the node's before, and that Pods still live in. */
  readonly isCurrent: boolean;
};

/**
 * How a GlobalRoute Pod is wired. `bridge`: a port of the bridge. `routed`: a route to its link, as a Pod of a shared
 * ENI.
 */
export type GrWiring = 'bridge' | 'routed';

/** How the node's GlobalRoute Pods are wired. */
export type BridgeNetwork = {
  /** Its present name. */
  readonly name: string;
  /** `BRIDGE_IFINDEX` while there is none. `locateBridge` finds all three. */
  readonly ifindex: number;
  readonly isPresent: boolean;
  /** Bytes. */
  readonly mtu: number;
  /** Of new Pods; each Pod keeps its own. */
  readonly wiring: GrWiring;
  /**
   * Packets of GlobalRoute Pods that leave by the primary interface get its address, except those to the CIDRs of
   * `exempt`. Absent: another program does it, or none.
   */
  readonly masquerade?: { readonly exempt: readonly string[] };
};

/** One attached ENI that Pods share. */
export type EniNetwork = {
  readonly eniId: string;
  readonly mac: string;
  readonly ifindex: number;
  readonly ifname: string;
  readonly mtu: number;
  /** 4000 + ifindex at the first set-up, kept for the ENI's life. It is also the link group of the ENI's Pods. */
  readonly table: number;
  /** 1..255; moved into the mark mask it is the ENI's packet mark. */
  readonly slot: number;
  /** The primary address of each family and the VPC's gateway in its subnet. */
  readonly addresses: readonly { readonly ip: string; readonly gateway: string }[];
  /**
   * Addresses of Pods that another program wires (`--role=uplinks`): each has the two per-pod rules, whether a Pod has it
   * or not. Absent: none.
   */
  readonly podIps?: readonly string[];
};

/** The network interface of an ENI that one Pod has exclusively. */
export type ExclusiveNic = {
  readonly mac: string;
  /** Its name in the host's namespace, which it has again after its return. */
  readonly hostName: string;
  /** The MTU that the cloud set, bytes; the interface has it again after its return. */
  readonly mtu: number;
  /** Its own addresses, which the Pod uses, each with the VPC's gateway in its subnet. */
  readonly addresses: readonly { readonly ip: string; readonly gateway: string; readonly prefixLength: number }[];
};

/** What every attachment of a Pod has. */
type Attachment = {
  readonly key: { readonly containerId: string; readonly ifName: string };
  readonly ips: readonly string[];
  /** `ifindex` is known after the link was created. */
  readonly hostVeth: { readonly name: string; readonly mac: string; readonly ifindex?: number };
  /** `name` is CNI's IFNAME; with an exclusive ENI it is `sideName` of that. */
  readonly podVeth: { readonly name: string; readonly mac: string };
  readonly mtu: number;
  /** IFLA_IFALIAS of the host veth. */
  readonly alias: string;
  /** Turns IPv6 off in the Pod (conf field `disableIPv6`). Default false. */
  readonly disableIpv6?: boolean;
  /**
   * Its ADD may still go on: plugins after ours, such as bandwidth, need the link without filters, and none is planned.
   * Default false.
   */
  readonly isNew?: boolean;
  /**
   * No plugin after ours needs the place of the link's traffic filters, so it may be made before the link is up: later the kernel
   * throws away what the link sends meanwhile. Default false.
   */
  readonly filterPlace?: boolean;
};

/** One attachment of a Pod to an ENI. */
export type EniPodNetwork = Attachment & {
  /**
   * `ipam`: tke-eni-ipamc under another main plugin. Its links are foreign, and it has the two per-pod rules in either
   * rule mode.
   * `direct-eni`: the Pod has an exclusive ENI; `hostVeth` and `podVeth` are the ends of the side link.
   */
  readonly kind: 'route-eni' | 'ipam' | 'direct-eni';
  /** For kind `ipam`: the main plugin has rules of its own for the address, and ours must not stand beside them. */
  readonly hasForeignRules?: true;
  /**
   * Table of the ENI that has these addresses, and group of the host link. For an exclusive ENI: `DIRECT_LINK_GROUP`.
   */
  readonly eniTable: number;
  /** The exclusive interface of the Pod: for kind `direct-eni` only. */
  readonly nic?: ExclusiveNic;
};

/** One attachment of a GlobalRoute Pod, which has an address of a block of its node. */
export type BridgePodNetwork = Attachment & {
  readonly kind: 'bridge';
  readonly wiring: GrWiring;
  /** The block of the address, as it was when the Pod was wired. */
  readonly block: { readonly gateway: string; readonly prefixLength: number };
};

/** One attachment of a Pod. */
export type PodNetwork = EniPodNetwork | BridgePodNetwork;
