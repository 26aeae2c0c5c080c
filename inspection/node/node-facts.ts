import type { JournalContent } from '../../agent/journal/journal-content.ts';
import type { Lease } from '../../agent/journal/lease.ts';
import type { NodeRecord } from '../../agent/journal/node-record.ts';
import type { AddressMessage } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { NeighMessage } from '../../netlink/neigh-message.ts';
import type { QdiscMessage } from '../../netlink/qdisc-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage } from '../../netlink/rule-message.ts';
import type { TrafficFilterMessage } from '../../netlink/traffic-filter-message.ts';
import type { XfrmPolicyMessage } from '../../netlink/xfrm-policy-message.ts';

/**
 * A value that was read, or why it could not be read and what the user can do. A missing value is never shown as an
 * empty one.
 */
export type Known<T> =
  | { readonly kind: 'known'; readonly value: T }
  | { readonly kind: 'unknown'; readonly why: string; readonly next: string };

/** What other programs put between a link and the network stack. The agent makes none of it. */
export type TrafficFacts = {
  readonly qdiscs: Known<readonly QdiscMessage[]>;
  readonly filters: Known<readonly TrafficFilterMessage[]>;
  /** IPsec policies. */
  readonly policies: Known<readonly XfrmPolicyMessage[]>;
};

/** The kernel's state of one network namespace, both families, as rtnetlink reports it. */
export type NetnsFacts = {
  readonly links: readonly LinkMessage[];
  readonly addresses: readonly AddressMessage[];
  /** Routes of all tables. */
  readonly routes: readonly RouteMessage[];
  readonly rules: readonly RuleMessage[];
  readonly neighs: readonly NeighMessage[];
  /**
   * Values of the relevant settings by dotted name, those of each interface included; settings that the kernel lacks
   * are missing.
   */
  readonly sysctls: ReadonlyMap<string, string>;
  readonly traffic: TrafficFacts;
  /** Of a Pod: links of which a packet socket receives every packet. */
  readonly packetLinks?: readonly number[];
  /** Describes objects that the kernel listed and that cannot be read, a line each; absent: none. */
  readonly unreadable?: readonly string[];
};

/** The nftables state of the namespace: `nft -j list ruleset`, decoded, and the text of the table of tke-eni. */
export type NftFacts = {
  /** Objects of the "nftables" array, without metainfo. @see libnftables-json(5) */
  readonly objects: readonly Readonly<Record<string, unknown>>[];
  /** Output of `nft list table inet tke_eni`; undefined when the table does not exist. */
  readonly ourTable: string | undefined;
  /** Names of the links that the flowtable of the fast path has; absent when there is none. */
  readonly flowLinks?: readonly string[];
};

/** State of the host's namespace. */
export type HostFacts = NetnsFacts & {
  readonly nft: Known<NftFacts>;
  /** Lines of iptables-save of the legacy backend, both families; empty where the kernel has no such tables. */
  readonly legacyIptables: Known<readonly string[]>;
  /** Numbers of the netfilter queues that a program reads from. */
  readonly queueListeners: Known<readonly number[]>;
  /**
   * Table names by number: those of /etc/iproute2/rt_tables and of the kernel, and 'tke-pods' and 'eni-…' of tke-eni.
   */
  readonly tableNames: ReadonlyMap<number, string>;
};

/** A Pod interface: from the journal, or, without a journal, from the kernel (by the alias of the host veth). */
export type PodReading = {
  /** `<containerId>/<ifName>` */
  readonly key: string;
  readonly lease: Known<Lease>;
  /** Ifindex of the host veth; undefined when it does not exist. */
  readonly hostIfindex: number | undefined;
  /** State of the Pod's network namespace. */
  readonly inside: Known<NetnsFacts>;
};

/** State that the agent stored: the journal, and the node as it last planned it. */
export type AgentFacts = {
  readonly journal: JournalContent;
  readonly node: Known<NodeRecord>;
  /** True when the journal was created again: Pods may then run that it does not contain. */
  readonly needsAdoption?: boolean;
};

/** Everything that the CLI reads about this node from kernel and files, in one pass. */
export type NodeFacts = {
  readonly host: HostFacts;
  readonly agent: Known<AgentFacts>;
  readonly pods: readonly PodReading[];
};
