import { readPacketLinks } from '../../dataplane/read-packet-links.ts';
import { LibcError } from '../../netlink/errno.ts';
import { NetlinkError } from '../../netlink/netlink-error.ts';
import { type Netns, withNetns } from '../../netlink/netns.ts';
import type { QdiscMessage } from '../../netlink/qdisc-message.ts';
import { openRtnetlink, type Rtnetlink } from '../../netlink/rtnetlink.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { TC_H_INGRESS_EGRESS, TC_H_MIN_EGRESS, TC_H_MIN_INGRESS } from '../../netlink/uapi/pkt-sched.ts';
import { listXfrmPolicies } from '../../netlink/xfrm.ts';
import { openSysctl, type Sysctl } from '../../sysctl/sysctl.ts';
import { isSysctlError } from '../../sysctl/sysctl-error.ts';
import { parseSysctlName, type SysctlKey, sysctlKey, sysctlName } from '../../sysctl/sysctl-key.ts';
import { known, unknown } from './known.ts';
import type { Known, NetnsFacts, TrafficFacts } from './node-facts.ts';

/** What to read beside links, addresses, routes, rules and neighbours. */
export type NetnsReading = {
  /**
   * False: no settings are read, which saves one file for each setting of each interface. 'when-asked': each setting is
   * read when it is first asked for, in the namespace that the process has then, so only without `netns`. Default true.
   */
  readonly sysctls?: boolean | 'when-asked';
  /** Whether to read disciplines, traffic filters and IPsec policies; default: unless `sysctls` is false. */
  readonly traffic?: boolean;
};

const NOT_REQUESTED = unknown('it was not requested', 'request it');
const NO_TRAFFIC: TrafficFacts = { qdiscs: NOT_REQUESTED, filters: NOT_REQUESTED, policies: NOT_REQUESTED };

/**
 * Reads the kernel's state of `netns`, or of the current namespace. Each table is read at its own moment: a change in
 * between may show in one and not in the other.
 * @throws NetlinkError, LibcError, NetnsError (EPERM without CAP_SYS_ADMIN)
 */
export function readNetnsFacts(netns?: Netns, reading: NetnsReading = {}): NetnsFacts {
  const read = (): NetnsFacts => {
    using rtnetlink = openRtnetlink();
    const { result: dumps, unreadable } = rtnetlink.skipUnreadable(() => readDumps(rtnetlink));
    const names = dumps.links.map(({ ifname }) => ifname);
    return {
      ...dumps,
      sysctls: settingsOf(reading, netns, names),
      traffic: (reading.traffic ?? reading.sysctls !== false) ? readTrafficFacts(rtnetlink) : NO_TRAFFIC,
      ...(netns === undefined ? {} : { packetLinks: readPacketLinks() }),
      ...(unreadable.length === 0 ? {} : { unreadable }),
    };
  };
  return netns === undefined ? read() : withNetns(netns, read);
}

function settingsOf(
  { sysctls = true }: NetnsReading,
  netns: Netns | undefined,
  ifnames: readonly string[],
): NetnsFacts['sysctls'] {
  if (sysctls === false) return new Map();
  return sysctls === 'when-asked' && netns === undefined ? new SettingsWhenAsked() : readSysctls(ifnames);
}

/** Reads what rtnetlink lists of a namespace. @throws NetlinkError */
export function readDumps(rtnetlink: Rtnetlink): Omit<NetnsFacts, 'sysctls' | 'traffic' | 'packetLinks'> {
  const families = [AF_INET, AF_INET6];
  return {
    links: rtnetlink.link.list(),
    addresses: rtnetlink.address.list(),
    routes: families.flatMap((family) => rtnetlink.route.list({ family })),
    rules: families.flatMap((family) => rtnetlink.rule.list({ family })),
    neighs: rtnetlink.neigh.list(),
  };
}

/** Settings that exist once in a namespace. */
const GLOBAL: readonly (readonly string[])[] = [
  ['net', 'ipv4', 'ip_forward'],
  ['net', 'ipv4', 'ip_default_ttl'],
  ['net', 'ipv4', 'ip_local_port_range'],
  ['net', 'ipv4', 'neigh', 'default', 'gc_thresh1'],
  ['net', 'ipv4', 'neigh', 'default', 'gc_thresh2'],
  ['net', 'ipv4', 'neigh', 'default', 'gc_thresh3'],
  ['net', 'ipv6', 'neigh', 'default', 'gc_thresh3'],
  ['net', 'ipv4', 'tcp_mtu_probing'],
  ['net', 'netfilter', 'nf_conntrack_max'],
  ['net', 'netfilter', 'nf_conntrack_count'],
  ['net', 'netfilter', 'nf_conntrack_buckets'],
  ['net', 'netfilter', 'nf_conntrack_tcp_be_liberal'],
  ['net', 'bridge', 'bridge-nf-call-iptables'],
  ['net', 'bridge', 'bridge-nf-call-ip6tables'],
];

/** Settings of each interface, and of `all` and `default`. */
const PER_INTERFACE = {
  ipv4: [
    'forwarding',
    'rp_filter',
    'src_valid_mark',
    'arp_ignore',
    'arp_announce',
    'arp_filter',
    'proxy_arp',
    'send_redirects',
    'accept_redirects',
    'accept_local',
  ],
  ipv6: ['forwarding', 'disable_ipv6', 'accept_ra', 'accept_dad', 'addr_gen_mode', 'accept_redirects', 'hop_limit'],
} as const;

/** Settings of each interface for its neighbours, the same for both families. */
const PER_NEIGHBOUR_TABLE = ['mcast_solicit', 'app_solicit'] as const;

/**
 * Reads the relevant settings, those of interfaces by their names, by dotted name; a setting that does not exist is left
 * out. Default: of the current namespace.
 */
export function readSysctls(
  ifnames: readonly string[],
  sysctl: Pick<Sysctl, 'find'> = openSysctl(),
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const key of [...GLOBAL.map((path) => sysctlKey(...path)), ...interfaceKeys(ifnames)]) {
    const value = readable(() => sysctl.find(key));
    if (value !== undefined) found.set(sysctlName(key), value);
  }
  return found;
}

/**
 * Settings of which each is read once, when it is first asked for: a packet's way needs tens of the thousands on a full
 * node. It lists those that were asked for.
 */
class SettingsWhenAsked extends Map<string, string> {
  readonly #sysctl = openSysctl();
  readonly #asked = new Set<string>();

  override get(name: string): string | undefined {
    if (!this.#asked.has(name)) {
      this.#asked.add(name);
      const value = readable(() => this.#sysctl.find(parseSysctlName(name)));
      if (value !== undefined) this.set(name, value);
    }
    return super.get(name);
  }
}

function interfaceKeys(ifnames: readonly string[]): readonly SysctlKey[] {
  // A message without a name names no file.
  const scopes = ifnames.filter((name) => name !== '');
  const families = ['ipv4', 'ipv6'] as const;
  const ofConf = ['all', 'default', ...scopes].flatMap((scope) =>
    families.flatMap((family) => PER_INTERFACE[family].map((name) => sysctlKey('net', family, 'conf', scope, name))),
  );
  const ofNeighbours = scopes.flatMap((scope) =>
    families.flatMap((family) => PER_NEIGHBOUR_TABLE.map((name) => sysctlKey('net', family, 'neigh', scope, name))),
  );
  return [...ofConf, ...ofNeighbours];
}

/**
 * Reads a setting; undefined where the read fails. Some settings are for root only, some have no value yet (no prefix
 * route).
 */
function readable(read: () => string | undefined): string | undefined {
  try {
    return read();
  } catch (error) {
    if (isSysctlError(error)) return undefined;
    throw error;
  }
}

/**
 * Reads what other programs put between a link and the network stack, in the current namespace. Never throws NetlinkError
 * or LibcError: what cannot be read is returned as unknown.
 */
function readTrafficFacts(rtnetlink: Rtnetlink): TrafficFacts {
  const qdiscs = orWhyNot('qdiscs', () => rtnetlink.qdisc.list());
  const places = qdiscs.kind === 'known' ? qdiscs.value.flatMap(placesOf) : [];
  return {
    qdiscs,
    filters: orWhyNot('traffic filters', () => places.flatMap((place) => rtnetlink.trafficFilter.list(place))),
    policies: readPolicies(),
  };
}

/** Places of a discipline that can have filters. */
function placesOf({ kind, ifindex, handle }: QdiscMessage): readonly { ifindex: number; parent: number }[] {
  const at = (parent: number) => ({ ifindex, parent: parent >>> 0 });
  if (kind === 'clsact') {
    return [at(TC_H_INGRESS_EGRESS | TC_H_MIN_INGRESS), at(TC_H_INGRESS_EGRESS | TC_H_MIN_EGRESS)];
  }
  if (kind === 'ingress') return [at(TC_H_INGRESS_EGRESS | TC_H_MIN_INGRESS)];
  return handle === 0 ? [] : [at(handle)];
}

function readPolicies(): TrafficFacts['policies'] {
  try {
    return known(listXfrmPolicies());
  } catch (error) {
    // The kernel has no IPsec, so it has no policies.
    if (error instanceof LibcError && error.code === 'EPROTONOSUPPORT') return known([]);
    return whyNot('IPsec policies', error);
  }
}

function orWhyNot<T>(what: string, read: () => T): Known<T> {
  try {
    return known(read());
  } catch (error) {
    return whyNot(what, error);
  }
}

function whyNot(what: string, error: unknown): Known<never> {
  if (!(error instanceof NetlinkError || error instanceof LibcError)) throw error;
  if (error.code === 'EPERM') return unknown(`${what} can be read by root only`, 'run as root, or with CAP_NET_ADMIN');
  return unknown(`${what} cannot be read: ${error.message}`, 'try `tc qdisc show` and `ip xfrm policy` by hand');
}
