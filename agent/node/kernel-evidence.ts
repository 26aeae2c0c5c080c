import type { RuleMode } from '../../dataplane/network.ts';

/** A veth in the host's namespace, and what it shows by itself. */
export type LinkEvidence = {
  readonly name: string;
  readonly mac: string;
  readonly ifindex: number;
  readonly mtu: number;
  /** Addresses whose host route points to this veth. */
  readonly ips: readonly string[];
  /** Routing table of its ENI, read from the link group; `DIRECT_LINK_GROUP` for a Pod with a whole ENI. */
  readonly table: number;
  /** Present on a port of a bridge: a GlobalRoute Pod's. */
  readonly isPort?: true;
  /** Index of its other end in that one's namespace. */
  readonly peerIfindex?: number;
};

/** A host veth of ours. The attachment that it belongs to is named by its alias, or else by what the others show. */
export type VethEvidence = LinkEvidence & { readonly containerId: string; readonly ifName: string };

/** A host veth that has no alias of ours, and that no route of another program leads to. */
export type UnnamedVeth = LinkEvidence & {
  /** It has our link group, a host route of ours or a name of our form. */
  readonly isMarked: boolean;
};

/** What a veth in a network namespace shows of the Pod that it belongs to. */
export type PodEnd = {
  readonly netns: string;
  readonly ifName: string;
  readonly ifindex: number;
  readonly peerIfindex: number;
  readonly mac: string;
  /** Without link-local ones. */
  readonly ips: readonly string[];
  /** MAC addresses of its neighbour entries: that of the gateway is the host veth's. */
  readonly neighMacs: readonly string[];
  /** Its default route leads to our gateway. */
  readonly hasGateway: boolean;
};

/** Kernel state that is left of an ENI. */
export type EniEvidence = {
  readonly table: number;
  /** Absent in per-pod mode, which uses no packet marks. */
  readonly slot?: number;
  /** Read from its link; absent when the link is not on this node. */
  readonly mac?: string;
  /** Its own addresses, read from the rules that route their replies. */
  readonly primary: readonly { readonly ip: string; readonly gateway?: string }[];
};

/** All kernel state of attachments that an earlier agent made and that no journal knows. */
export type KernelEvidence = {
  readonly veths: readonly VethEvidence[];
  /** Those that may be a Pod's although their alias was changed. */
  readonly unnamed?: readonly UnnamedVeth[];
  readonly enis: readonly EniEvidence[];
  /** Attachments of `tke-eni-ipamc`: addresses that have two rules and no link of ours. */
  readonly ipams: readonly { readonly ip: string; readonly table: number }[];
  /**
   * Single addresses that a rule of another program leads to table main: main plugins with an uplink write such a rule for
   * each of their Pods, and nothing of ours stands beside it.
   */
  readonly ruledByOthers?: readonly string[];
  /** Blocks of GlobalRoute Pods, of our rules and routes that lead to them. */
  readonly blocks: readonly string[];
  /** Undefined when the kernel has no rules of ours that show it. */
  readonly ruleMode?: RuleMode;
};

/** What the inside of a sandbox shows of one interface. */
export type PeerEvidence = {
  readonly netns: string;
  readonly podMac: string;
  /** Its addresses, without link-local ones. They survive a flush of the host's routes. */
  readonly ips: readonly string[];
  /** Only for a Pod with a whole ENI: the MAC of the Pod's end of the veth pair beside it. */
  readonly nic?: { readonly sideMac: string };
};
