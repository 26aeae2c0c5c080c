import type { RuleMode } from '../../dataplane/network.ts';

/** A host veth of ours: its alias says whose it is. */
export type VethEvidence = {
  readonly containerId: string;
  readonly ifName: string;
  readonly name: string;
  readonly mac: string;
  readonly ifindex: number;
  readonly mtu: number;
  /** Addresses whose host route leads to it. */
  readonly ips: readonly string[];
  /** Table of its ENI, from its link group; `DIRECT_LINK_GROUP` beside a whole ENI. */
  readonly table: number;
};

/** What is left of an ENI in the kernel. */
export type EniEvidence = {
  readonly table: number;
  /** Absent in per-pod mode, which has no marks. */
  readonly slot?: number;
  /** From its link, when that is here. */
  readonly mac?: string;
  /** Its own addresses, from the rules that lead their answers. */
  readonly primary: readonly { readonly ip: string; readonly gateway?: string }[];
};

/** All that the kernel says of attachments made by an agent that nobody remembers. */
export type KernelEvidence = {
  readonly veths: readonly VethEvidence[];
  readonly enis: readonly EniEvidence[];
  /** Pods of `tke-eni-ipamc`: addresses with two rules and no link of ours. */
  readonly ipams: readonly { readonly ip: string; readonly table: number }[];
  /** Undefined when there is nothing of ours. */
  readonly ruleMode?: RuleMode;
};

/** What the inside of a sandbox says of one interface. */
export type PeerEvidence = {
  readonly netns: string;
  readonly podMac: string;
  /** Its addresses, without link-local ones: they outlive a flush of the host's routes. */
  readonly ips: readonly string[];
  /** Of a Pod with a whole ENI: its interface, which still says what it was called, and the MAC of the end beside it. */
  readonly nic?: { readonly hostName: string; readonly mtu: number; readonly sideMac: string };
};
