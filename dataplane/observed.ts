import type { AddressState, NeighState, RouteState, RuleState } from './desired.ts';

/** What the kernel says besides the fields that we compare. */
export type Ownership = {
  /** rtm_protocol or FRA_PROTOCOL; 0 where the kernel does not tell. */
  readonly protocol: number;
  /** The object as ip(8) would show it, for messages. */
  readonly shown: string;
  /** True when it has selectors or properties that our state cannot express, so it is none that we wrote. */
  readonly isExotic: boolean;
};

/** A link that is there. */
export type ObservedLink = {
  readonly ifindex: number;
  readonly ifname: string;
  readonly isUp: boolean;
  readonly mtu: number;
  readonly group: number;
  readonly mac?: string;
  readonly kind?: string;
  readonly ifalias?: string;
};

/** A route that is there. */
export type ObservedRoute = RouteState & Ownership;

/** A rule that is there. */
export type ObservedRule = RuleState & Ownership;

/** Our nftables table as it is. */
export type ObservedNft = {
  /** The desired text, if what is loaded is exactly what this text makes; otherwise absent. */
  readonly text?: string;
  /** What is loaded, as commands that would load it again; absent when there is no table. */
  readonly restore?: string;
};

/** What is there of all that a desired state speaks of, and all of ours besides. */
export type ObservedHost = {
  readonly links: readonly ObservedLink[];
  readonly addresses: readonly AddressState[];
  readonly routes: readonly ObservedRoute[];
  readonly rules: readonly ObservedRule[];
  readonly neighs: readonly NeighState[];
  /** Value by `sysctlName`; a key that the kernel lacks is missing. */
  readonly sysctls: ReadonlyMap<string, string>;
  readonly nft: ObservedNft;
};
