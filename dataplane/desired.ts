import type { AddressMessage } from '../netlink/address-message.ts';
import type { RouteMessage } from '../netlink/route-message.ts';
import type { RuleMessage } from '../netlink/rule-message.ts';
import type { SysctlKey } from '../sysctl/sysctl-key.ts';
import { sysctlName } from '../sysctl/sysctl-key.ts';
import { type Family, familyOf } from './ip-prefix.ts';

/**
 * The wanted state of a link. Host state makes one kind of link, a bridge: wirePod creates a Pod's, the cloud attaches an
 * ENI's.
 */
export type LinkState = {
  readonly ifindex: number;
  /** For people; the ifindex is the identity. */
  readonly ifname: string;
  readonly up?: true;
  readonly mtu?: number;
  readonly group?: number;
  /** The MAC that the other end of the link, or the cloud, sends to; absent where any will do. */
  readonly mac?: string;
  /** True: IFF_NOARP is not set, so that the kernel asks for neighbours on this link and answers them. */
  readonly arp?: true;
  /**
   * The bridge that the link is a port of. 0: the link is in no bridge, bond or VRF, which would take its packets.
   */
  readonly master?: number;
  /** True: a port of a bridge, which may send a packet back by it, and takes and gives whatever ports do. */
  readonly hairpin?: true;
  /** False: IFF_PROMISC is not set. */
  readonly promisc?: false;
  /** The link is a bridge that is made when it is missing. Its IPv4 addresses are all planned. */
  readonly kind?: 'bridge';
  /** IFLA_IFALIAS. */
  readonly ifalias?: string;
  /** True: the link has an IPv6 link-local address, with which the kernel asks for neighbours of packets that it forwards. */
  readonly linkLocal?: true;
};

/** An address of an interface, as `address/length`. It has no end. */
export type AddressState = {
  readonly ifindex: number;
  readonly ifname: string;
  readonly prefix: string;
  /** Only of one that was observed: what it has besides. No plan has it. */
  readonly more?: AddressMore;
};

/** What may make an address useless, or lead packets elsewhere. `address`: the other end of a point-to-point link. */
export type AddressMore = Partial<Pick<AddressMessage, 'address' | 'scope' | 'broadcast' | 'flags' | 'cacheinfo'>>;

/** A route. The protocol is always ours. */
export type RouteState = {
  readonly table: number;
  /** `unreachable`: packets are refused; `oif` is 0 and `oifname` is empty. Absent: unicast. */
  readonly type?: 'unreachable';
  /** `0.0.0.0/0` or `::/0` for a default route; the text carries the family. */
  readonly dst: string;
  readonly oif: number;
  /** For people; the ifindex identifies the interface. */
  readonly oifname: string;
  readonly gateway?: string;
  /** IPv4 only. Absent: global. */
  readonly scope?: 'link';
  readonly prefsrc?: string;
  /** Absent: the default metric of the family. */
  readonly metric?: number;
  /** Only of one that was observed: what it has besides. No plan has it. */
  readonly more?: Partial<RouteMessage>;
};

/**
 * A policy rule that looks up a table. The protocol is always ours. The kernel cannot change a rule: all its fields are
 * its identity.
 */
export type RuleState = {
  readonly family: Family;
  readonly priority: number;
  readonly table: number;
  readonly src?: string;
  readonly dst?: string;
  readonly fwmark?: number;
  readonly fwmask?: number;
  /** Only of one that was observed: what it has besides. No plan has it. */
  readonly more?: Partial<RuleMessage>;
};

/** A permanent neighbour. */
export type NeighState = {
  readonly ifindex: number;
  readonly ifname: string;
  readonly dst: string;
  readonly lladdr: string;
};

/** A kernel setting. */
export type SysctlState = {
  readonly key: SysctlKey;
  readonly value: string;
  /**
   * Only this value is replaced; any other was set by the node's owner and stays. Absent: every other value is
   * replaced.
   */
  readonly replaces?: string;
  /** True for a key that a kernel may lack (one booted without IPv6); a missing key is then no difference. */
  readonly isOptional?: true;
};

/** One of the fast path's two programs on a link: `fast` forwards known flows, `learn` records them. */
export type FilterState = {
  readonly ifindex: number;
  /** For people; the ifindex identifies the interface. */
  readonly ifname: string;
  readonly direction: 'ingress' | 'egress';
  readonly program: 'fast' | 'learn';
};

/** The flowtable of the fast path, in a table of its own. */
export type FlowtableState = {
  /** The table as the text that defines it, without devices. */
  readonly text: string;
  /** Links whose packets may take the way of their flow. */
  readonly devices: readonly { readonly ifindex: number; readonly ifname: string }[];
};

/** Our nftables table as the text that defines it. */
export type NftTable = {
  readonly text: string;
  /** Names of ENIs' interfaces that nft cannot hold: their lines are left out. Absent: none. */
  readonly unnamed?: readonly string[];
};

/**
 * The whole wanted state of one network namespace by one plan. Plain data; later items of a list may depend on earlier
 * ones.
 */
export type NetState = {
  readonly links: readonly LinkState[];
  readonly addresses: readonly AddressState[];
  readonly routes: readonly RouteState[];
  readonly rules: readonly RuleState[];
  readonly neighs: readonly NeighState[];
  readonly sysctls: readonly SysctlState[];
};

/**
 * The node's side. `nft` is present only in a plan of the whole node: the table contains all ENIs or none. `filters` is
 * present only where the fast path's programs are planned, `flowtable` only where that is.
 */
export type HostState = NetState & {
  readonly nft?: NftTable;
  readonly filters?: readonly FilterState[];
  readonly flowtable?: FlowtableState;
};

/** The Pod's side; interface indexes are those of its namespace. */
export type PodState = NetState;

/** A state without any item. */
export const EMPTY_STATE: HostState = { links: [], addresses: [], routes: [], rules: [], neighs: [], sysctls: [] };

/** Joins plans. Items that two plans have in common are kept once; the last nft table and flowtable are used. */
export function mergeHostState(...states: readonly HostState[]): HostState {
  const nft = states.findLast((state) => state.nft !== undefined)?.nft;
  const flowtable = states.findLast((state) => state.flowtable !== undefined)?.flowtable;
  const filters = states.flatMap((state) => state.filters ?? []);
  return {
    links: unique(
      states.flatMap((state) => state.links),
      linkKey,
    ),
    addresses: unique(
      states.flatMap((state) => state.addresses),
      addressKey,
    ),
    routes: unique(
      states.flatMap((state) => state.routes),
      routeKey,
    ),
    rules: unique(
      states.flatMap((state) => state.rules),
      ruleKey,
    ),
    neighs: unique(
      states.flatMap((state) => state.neighs),
      neighKey,
    ),
    sysctls: unique(
      states.flatMap((state) => state.sysctls),
      (sysctl) => sysctlName(sysctl.key),
    ),
    ...(nft === undefined ? {} : { nft }),
    ...(flowtable === undefined ? {} : { flowtable }),
    ...(states.some((state) => state.filters !== undefined) ? { filters: unique(filters, filterKey) } : {}),
  };
}

/** Identity of a link. */
function linkKey(link: Pick<LinkState, 'ifindex'>): string {
  return String(link.ifindex);
}

/**
 * Identity of an address. Of IPv4 the same address with another length or another end is another one for the kernel; of IPv6
 * a link has an address once.
 */
export function addressKey({ ifindex, prefix, more }: Pick<AddressState, 'ifindex' | 'prefix' | 'more'>): string {
  if (familyOf(prefix) === 6) return `${ifindex} ${prefix.slice(0, prefix.indexOf('/'))}`;
  return `${ifindex} ${prefix}${more?.address === undefined ? '' : ` peer ${more.address}`}`;
}

/** Identity of a route for `replace`: a route with the same identity is overwritten. */
export function routeKey({ table, dst, metric, more }: Pick<RouteState, 'table' | 'dst' | 'metric' | 'more'>): string {
  const { tos = 0, src } = more ?? {};
  return `${table} ${dst} ${metric ?? ''}${tos === 0 ? '' : ` tos ${tos}`}${src === undefined ? '' : ` from ${src}`}`;
}

/** Identity of a rule: all of it. */
export function ruleKey(rule: RuleState): string {
  const { family, priority, table, src = '', dst = '', fwmark = 0, fwmask = 0, more } = rule;
  const key = `${family} ${priority} ${table} ${src} ${dst} ${fwmark}/${fwmask}`;
  return more === undefined ? key : `${key} ${JSON.stringify(more)}`;
}

/** Identity of a neighbour. */
export function neighKey(neigh: Pick<NeighState, 'ifindex' | 'dst'>): string {
  return `${neigh.ifindex} ${neigh.dst}`;
}

/** Identity of a filter: a link has one of ours in each direction. */
export function filterKey(filter: Pick<FilterState, 'ifindex' | 'direction'>): string {
  return `${filter.ifindex} ${filter.direction}`;
}

/** Reports whether two addresses of one identity are equal: to a planned one only an address without anything besides is. */
export function isSameAddress(a: AddressState, b: AddressState): boolean {
  return a.prefix === b.prefix && a.more === undefined && b.more === undefined;
}

/** Reports whether two routes of one identity are equal: to a planned one only a route without anything besides is. */
export function isSameRoute(a: RouteState, b: RouteState): boolean {
  return (
    a.type === b.type &&
    a.oif === b.oif &&
    a.gateway === b.gateway &&
    a.scope === b.scope &&
    a.prefsrc === b.prefsrc &&
    a.more === undefined &&
    b.more === undefined
  );
}

function unique<T>(items: readonly T[], keyOf: (item: T) => string): readonly T[] {
  const byKey = new Map<string, T>();
  for (const item of items) {
    if (!byKey.has(keyOf(item))) byKey.set(keyOf(item), item);
  }
  return [...byKey.values()];
}
