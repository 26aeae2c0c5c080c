import type { PortProperties } from './bridge-port.ts';
import type { AddressState, FilterState, NeighState, RouteState, RuleState } from './desired.ts';

/** What the kernel reports besides the fields that are compared. */
type Ownership = {
  /** rtm_protocol or FRA_PROTOCOL; 0 when the kernel does not report it. */
  readonly protocol: number;
  /** The object as ip(8) would show it, for messages. */
  readonly shown: string;
};

/** An observed link. */
export type ObservedLink = {
  readonly ifindex: number;
  readonly ifname: string;
  readonly isUp: boolean;
  readonly mtu: number;
  readonly group: number;
  readonly mac?: string;
  /** True when IFF_RUNNING is set: then the kernel has made its link-local address, if it makes one. */
  readonly isRunning?: boolean;
  /** True when IFF_NOARP is set. */
  readonly isNoArp?: boolean;
  /** True when IFF_PROMISC is set. */
  readonly isPromisc?: boolean;
  /** Only of a port of a bridge: what it has that a port of ours has not. */
  readonly oddPort?: PortProperties;
  /** Ifindex of the bridge, bond or VRF that the link is in. */
  readonly master?: number;
  readonly kind?: string;
  readonly ifalias?: string;
};

/** An observed route. */
export type ObservedRoute = RouteState & Ownership;

/** An observed rule. */
export type ObservedRule = RuleState & Ownership;

/** The observed nftables table. */
export type ObservedNft = {
  /** The desired text, if what is loaded is exactly what this text defines; otherwise absent. */
  readonly text?: string;
  /** What is loaded, as commands that would load it again; absent when there is no table. */
  readonly restore?: string;
  /** Chains of what is loaded that the desired text lacks, if the others can stay (`compareTables`). */
  readonly former?: readonly string[];
  /** The table of the fast path's flowtable; absent when there is none. */
  readonly flowtable?: ObservedFlowtable;
};

/** The observed table of the flowtable. */
export type ObservedFlowtable = {
  /** Whether all but the devices is exactly what is planned; false when none is planned. */
  readonly isCurrent: boolean;
  /** Names of its devices. From kernel 6.16 on those of deleted links are among them. */
  readonly devices: readonly string[];
  /** What is loaded, as commands that would load it again. */
  readonly restore: string;
};

/** A filter of the fast path on a link. */
type ObservedFilter = FilterState & {
  /** False for one with another program than the one that is loaded now, as of an agent of another release. */
  readonly isCurrent: boolean;
};

/** The observed traffic filters of the host's links. */
export type ObservedFilters = {
  readonly ours: readonly ObservedFilter[];
  /** Filters and disciplines of others at the ingress or egress of a link, as tc(8) would name them. */
  readonly foreign: readonly { readonly ifindex: number; readonly ifname: string; readonly shown: string }[];
};

/** The observed state of everything that a desired state mentions, and of everything else of ours. */
export type ObservedHost = {
  readonly links: readonly ObservedLink[];
  readonly addresses: readonly AddressState[];
  readonly routes: readonly ObservedRoute[];
  readonly rules: readonly ObservedRule[];
  readonly neighs: readonly NeighState[];
  /** Value by `sysctlName`; a key that the kernel lacks is missing. */
  readonly sysctls: ReadonlyMap<string, string>;
  readonly nft: ObservedNft;
  /** Absent: they were not read. */
  readonly filters?: ObservedFilters;
  /** Describes objects that the kernel listed and that cannot be read, a line each; absent: none. */
  readonly unreadable?: readonly string[];
};
