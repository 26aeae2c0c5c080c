import type { Family } from './ip-prefix.ts';

/** Which layout of rules leads a Pod's packets to its ENI. */
export type RuleMode = 'compact' | 'per-pod';

/** What the plan must know of the node. All that varies between nodes comes in here. */
export type NodeNetwork = {
  readonly ruleMode: RuleMode;
  /** At least 8 bits in a row. */
  readonly eniMarkMask: number;
  /** `loose`: 2 on the ENIs and the primary, `all` untouched. `product`: 0 on these and on `all`. Pod veths are strict in both. */
  readonly rpFilterMode: 'loose' | 'product';
  /** Where packets for addresses beyond the VPC leave: by the Pod's ENI, or by the primary interface with the node's address. */
  readonly egress: 'eni' | 'node';
  readonly primary: { readonly ifindex: number; readonly ifname: string; readonly addresses: readonly string[] };
  /** CIDRs of the node's bridge Pods (GR); empty without. */
  readonly podCidrs: readonly string[];
  readonly families: readonly Family[];
  /** Whether answers of NodePort connections are led back by the interface that they came in by. */
  readonly nodePort: boolean;
  /** With `egress: 'node'`: what still leaves by the ENI. */
  readonly vpcCidrs: readonly string[];
  /** With `egress: 'node'`: addresses of Pods with an EIP of their own; these always leave by their ENI. */
  readonly egressExempt?: readonly string[];
  /** Whether the node has ENIs that Pods get as a whole: then what these send by their side link is led. Default false. */
  readonly hasDirect?: boolean;
  /** Networks of Services, which Pods with a whole ENI reach through the node. Default none. */
  readonly serviceCidrs?: readonly string[];
  /** False where nftables is missing: no table is planned, IPv6 spoofing is not stopped and NodePort answers are not led. Default true. */
  readonly nftables?: boolean;
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
};

/** The network interface of an ENI that one Pod has as a whole. */
export type DirectNic = {
  readonly mac: string;
  /** What it is called in the host's namespace, and is called again when it comes back. */
  readonly hostName: string;
  /** What the cloud gave it, bytes; what it has again when it comes back. */
  readonly mtu: number;
  /** Its own addresses, which are the Pod's, each with the VPC's gateway in its subnet. */
  readonly addresses: readonly { readonly ip: string; readonly gateway: string; readonly prefixLength: number }[];
};

/** One attachment of a Pod. */
export type PodNetwork = {
  readonly key: { readonly containerId: string; readonly ifName: string };
  /**
   * `ipam`: tke-eni-ipamc under another main plugin. The links are not ours, and always have the two per-pod rules.
   * `direct-eni`: the Pod has an ENI as a whole; `hostVeth` and `podVeth` are the ends of the link beside it.
   */
  readonly kind: 'route-eni' | 'ipam' | 'direct-eni';
  readonly ips: readonly string[];
  /** Table of the ENI whose addresses these are, and the group of the host link. Of a whole ENI: `DIRECT_LINK_GROUP`. */
  readonly eniTable: number;
  /** `ifindex` is known once the link is made. */
  readonly hostVeth: { readonly name: string; readonly mac: string; readonly ifindex?: number };
  /** `name` is CNI's IFNAME; beside a whole ENI it is `sideName` of it. */
  readonly podVeth: { readonly name: string; readonly mac: string };
  readonly mtu: number;
  /** IFLA_IFALIAS of the host veth. */
  readonly alias: string;
  /** Turns IPv6 off in the Pod (conf field `disableIPv6`). Default false. */
  readonly disableIpv6?: boolean;
  /** The interface that the Pod has as a whole: of kind `direct-eni`, and of no other. */
  readonly nic?: DirectNic;
};
