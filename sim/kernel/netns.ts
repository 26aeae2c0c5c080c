import type { AddressMessage } from '../../netlink/address-message.ts';
import type { BridgePort } from '../../netlink/link-kind/bridge-port.ts';
import type { MonitorEvent } from '../../netlink/monitor.ts';
import type { NeighMessage } from '../../netlink/neigh-message.ts';
import type { QdiscMessage } from '../../netlink/qdisc-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage } from '../../netlink/rule-message.ts';
import type { Clock } from '../../runtime/clock.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Address of a link. */
export type Address = Mutable<AddressMessage>;
/** Route of a table. */
export type Route = Mutable<RouteMessage>;
/** Policy rule. */
export type Rule = RuleMessage;
/** Entry of a link's neighbour table. */
export type Neigh = Mutable<NeighMessage>;

/** Settings of one scope of `net/ipv4/conf` and `net/ipv6/conf`, by the name of the file. */
export type Conf = {
  readonly 4: Map<string, string>;
  readonly 6: Map<string, string>;
  /** Of IPv4 what was written: it does not follow `default` any more. */
  readonly written: Set<string>;
};

/** Network interface; what is on it goes with it. */
export type Link = {
  netns: Netns;
  ifindex: number;
  ifname: string;
  readonly kind?: string;
  readonly type: number;
  address: string;
  /** The MAC of its hardware. */
  readonly permAddress?: string;
  broadcast: string;
  mtu: number;
  /** Whether somebody set its MTU after it was made. */
  hasOwnMtu: boolean;
  group: number;
  txqlen: number;
  /** IFF_*, without what follows from the carrier. */
  flags: number;
  ifalias?: string;
  master: number;
  /** Its settings as a port of a bridge. */
  port?: Partial<BridgePort>;
  /** The other end of a veth pair. */
  peer?: Link;
  /** Whether it is a device of the machine: it goes back to the host when its namespace ends. */
  readonly isHardware: boolean;
  /** Whether IPv6 has begun on it: it was up with a carrier, and not down since. */
  isReady6: boolean;
  readonly addresses: { readonly 4: Address[]; readonly 6: Address[] };
  neighs: Neigh[];
  readonly qdiscs: QdiscMessage[];
  conf: Conf;
};

/** One network namespace of the model: plain state, which the other files change. */
export type Netns = {
  readonly name: string;
  readonly machine: MachineState;
  readonly links: Map<number, Link>;
  /** Routes by family, table and destination, in the order of the kernel. */
  readonly tables: { readonly 4: Map<number, Table>; readonly 6: Map<number, Table> };
  readonly rules: { readonly 4: Rule[]; readonly 6: Rule[] };
  readonly all: Conf;
  readonly default: Conf;
  /** Settings of no link. */
  readonly settings: Map<string, string>;
  /** Tables of nftables by name. */
  readonly nft: Map<string, Map<string, NftChain>>;
  nftGeneration: number;
  readonly listeners: Set<(event: MonitorEvent) => void>;
  /** Ids that this namespace gave to others, as `linkNetnsid` says them. */
  readonly ids: Map<Netns, number>;
  nextIndex: number;
  isGone: boolean;
};

/** Routes of one table by destination; those of one destination in the order of the kernel. */
export type Table = Map<string, Route[]>;

/** A chain of our tables: the line of its hook, if it has one, and its rules. */
export type NftChain = { hook?: string; readonly rules: string[] };

/** What all namespaces of a machine share. */
export type MachineState = {
  readonly clock: Clock;
  /** Does something after a time of the clock, milliseconds. */
  later(ms: number, run: () => void): void;
  readonly host: () => Netns;
  /** The namespace of a descriptor; undefined when nobody has it open. */
  byFd(fd: number): Netns | undefined;
  /** Returns another MAC each time: the kernel's are by chance. */
  nextMac(): string;
  /** Returns the id of another process each time. */
  nextPid(): number;
};

/** Families of addresses. */
export type Family = 4 | 6;

/** Tells all who watch the namespace. */
export function emit(netns: Netns, event: MonitorEvent): void {
  for (const listener of [...netns.listeners]) listener(event);
}

/** Finds a link by its name. */
export function linkNamed(netns: Netns, ifname: string): Link | undefined {
  for (const link of netns.links.values()) if (link.ifname === ifname) return link;
  return undefined;
}

/** Lists the links in the order of the kernel. */
export function linksOf(netns: Netns): readonly Link[] {
  return [...netns.links.values()].sort((a, b) => a.ifindex - b.ifindex);
}
