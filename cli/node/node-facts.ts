import type { JournalContent } from '../../agent/journal/journal-content.ts';
import type { Lease } from '../../agent/journal/lease.ts';
import type { NodeRecord } from '../../agent/journal/node-record.ts';
import type { AddressMessage } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { NeighMessage } from '../../netlink/neigh-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage } from '../../netlink/rule-message.ts';

/** What could be read, or why not and what to do about it. Nothing missing is ever shown as empty. */
export type Known<T> =
  | { readonly kind: 'known'; readonly value: T }
  | { readonly kind: 'unknown'; readonly why: string; readonly next: string };

/** What the kernel holds of one network namespace, both families, as rtnetlink tells it. */
export type NetnsFacts = {
  readonly links: readonly LinkMessage[];
  readonly addresses: readonly AddressMessage[];
  /** All tables. */
  readonly routes: readonly RouteMessage[];
  readonly rules: readonly RuleMessage[];
  readonly neighs: readonly NeighMessage[];
  /** Dotted name to value: those that matter here, per interface ones included; one that the kernel lacks is missing. */
  readonly sysctls: ReadonlyMap<string, string>;
};

/** What nft tells of the namespace: `nft -j list ruleset`, decoded, and the text of our own table. */
export type NftFacts = {
  /** Objects of the "nftables" array, metainfo left out. @see libnftables-json(5) */
  readonly objects: readonly Readonly<Record<string, unknown>>[];
  /** `nft list table inet tke_eni`; undefined when it is not there. */
  readonly ourTable: string | undefined;
};

/** The host's namespace. */
export type HostFacts = NetnsFacts & {
  readonly nft: Known<NftFacts>;
  /** Number to name, of /etc/iproute2/rt_tables and the kernel's own; ours are added as 'tke-pods' and 'eni-…'. */
  readonly tableNames: ReadonlyMap<number, string>;
};

/** A Pod interface, as the journal has it, or, without a journal, as the kernel tells (alias of the host veth). */
export type PodFacts = {
  /** `<containerId>/<ifName>` */
  readonly key: string;
  readonly lease: Known<Lease>;
  /** Ifindex of the host veth; undefined when there is none. */
  readonly hostIfindex: number | undefined;
  /** Inside the Pod. */
  readonly inside: Known<NetnsFacts>;
};

/** What the agent wrote down: the journal, and the node as it last planned it. */
export type AgentFacts = {
  readonly journal: JournalContent;
  readonly node: Known<NodeRecord>;
  /** True when the journal was made anew and Pods may live which it does not know. */
  readonly needsAdoption?: boolean;
};

/** All that the CLI knows of this node from kernel and files, read in one go. */
export type NodeFacts = {
  readonly host: HostFacts;
  readonly agent: Known<AgentFacts>;
  readonly pods: readonly PodFacts[];
};
