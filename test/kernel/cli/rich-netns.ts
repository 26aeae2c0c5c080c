import { TestNetns } from '../netlink/support/test-netns.ts';

/** Lines that some kernel of ours may lack a module for; what is missing is said. */
const OPTIONAL_LINKS = [
  'link add mv0 link v0 type macvlan mode bridge',
  'link add mvt0 link v0 type macvtap mode vepa',
  'link add vx0 type vxlan id 42 dstport 4789 local 10.0.0.1 dev v0',
  'link add vx1 type vxlan id 43 group 239.1.1.1 dev v0 ttl 5 dstport 4789 nolearning',
  'link add vx2 type vxlan external dstport 4790',
  'link add ifb0 type ifb',
  'link add dm0 type dummy',
  'tuntap add dev tun0 mode tun',
  'tuntap add dev tap0 mode tap user 0 multi_queue',
];

const LINKS = [
  'link add br0 type bridge forward_delay 300 stp_state 1 priority 4096 mcast_snooping 0',
  'link set v1 master br0',
  'link set v0 group 4003 alias tke-eni/abc/eth0 mtu 1400 txqueuelen 77',
  'link set br0 up',
  'link set br0 addrgenmode none',
  'link property add dev v0 altname a-rather-long-alternative-name',
  'link add w0 type veth peer name w1',
  'link set w1 up',
];

const ADDRESSES = [
  'addr add 10.0.0.1/24 dev v0 label v0:x brd +',
  'addr add 10.9.0.1 peer 10.9.0.2/32 dev v0 metric 77',
  'addr add 10.0.0.3/24 dev v0 noprefixroute',
  'addr add fd00::5/64 dev v0 nodad valid_lft 5000 preferred_lft 3000',
  'addr add fd00::6/64 dev v0 nodad preferred_lft 0',
  'addr add fd01::1/128 dev v0 nodad noprefixroute home',
];

const ROUTES = [
  'route add 10.50.0.0/16 nexthop via 10.0.0.2 dev v0 weight 3 nexthop via 10.0.0.4 dev v0 onlink',
  'route add 10.51.0.0/16 via 10.0.0.2 mtu lock 1400 advmss 1360 initcwnd 20 quickack 1 rto_min 20ms features ecn hoplimit 9 rtt 30ms rttvar 8ms window 100 congctl reno',
  'route add blackhole 10.66.0.0/16 metric 9',
  'route add unreachable 10.67.0.0/16 table 100',
  'route add prohibit 10.68.0.0/16 proto static',
  'route add throw 10.69.0.0/16 table 100',
  'route add 10.52.0.0/16 via inet6 fe80::1 dev v0',
  'route add 10.53.0.0/16 dev v0 tos 0x28 realm 5',
  'route add 10.54.0.7/32 dev v0 table 3999 proto 84',
  'route add 10.54.0.0/30 dev v0 table 3999 proto 84',
  'route add 10.54.0.8/32 dev br0 table 3999 proto bird',
  'route add 10.54.0.9/32 dev v0 table 3999 proto 84 src 10.0.0.1',
  'route add 10.54.0.10/32 dev v0 table 4000 proto 84',
  'route add default via 10.7.0.1 dev v0 table 4003 onlink src 10.0.0.1 proto 84 metric 7',
  '-6 route add fd05::/64 via fe80::9 dev v0 expires 5000 pref high',
  '-6 route add fd06::/64 via fe80::9 dev v0 pref low metric 5',
  '-6 route add blackhole fd66::/64',
  '-6 route add unreachable fd67::/64 table 100',
  '-6 route add default nexthop via fe80::1 dev v0 weight 2 nexthop via fe80::2 dev v0',
  '-6 route add fd07::/64 dev v0 from fd00::5 table 55 proto ra',
  '-6 route add fd08::1/128 dev v0 table 3999 proto 84',
];

const RULES = [
  'rule add not from 10.1.0.0/16 to 10.2.0.0/16 fwmark 0x10/0xff iif v0 oif v1 tos 0x10 pref 100 lookup 4003 protocol 84',
  'rule add pref 101 ipproto tcp sport 10-20 dport 80 uidrange 5-9 goto 200',
  'rule add pref 102 lookup main suppress_prefixlength 0',
  'rule add pref 103 lookup main suppress_ifgroup 5',
  'rule add pref 104 blackhole',
  'rule add pref 105 from 10.3.0.0/16 prohibit',
  'rule add pref 106 unreachable',
  'rule add pref 107 tun_id 7 iif nodev lookup 77',
  'rule add pref 108 l3mdev',
  'rule add pref 109 lookup 55 realms 3/4',
  'rule add pref 110 goto 9999',
  'rule add pref 111 fwmark 0x20 lookup 56',
  'rule add pref 112 to 10.4.0.1 lookup 57 protocol bird',
  'rule add pref 200 nop',
  '-6 rule add pref 111 from fd00::/64 to fd01::1 lookup 4003',
  '-6 rule add pref 112 fwmark 0x80/0x80 lookup main protocol 84',
];

const NEIGHS = [
  'neigh add 10.0.0.77 lladdr 02:00:00:00:00:01 dev v0 nud permanent protocol 84',
  'neigh add 10.0.0.78 lladdr 02:00:00:00:00:02 dev v0 nud stale',
  'neigh add 10.0.0.79 lladdr 02:00:00:00:00:02 dev v0 nud reachable',
  'neigh add 10.0.0.80 dev v0 nud failed',
  'neigh add 10.0.0.81 dev v0 lladdr 02:00:00:00:00:09 nud noarp',
  'neigh add fe80::2 lladdr 02:00:00:00:00:02 dev v0 router nud stale extern_learn',
];

/** Kinds of links that must be there, or little would be tried. */
const LEAST_LINKS = 3;

/** Makes a namespace with something of everything. The caller disposes of it. @throws Error when hardly any link can be made */
export function openRichNetns(log: (line: string) => void): TestNetns {
  const netns = new TestNetns();
  try {
    netns.addVethPair();
    const missing = OPTIONAL_LINKS.filter((line) => !isMade(netns, line));
    for (const line of missing) log(`this kernel cannot: ip ${line}`);
    if (OPTIONAL_LINKS.length - missing.length < LEAST_LINKS)
      throw new Error('hardly any kind of link can be tried here');
    for (const line of [...LINKS, ...ADDRESSES, ...ROUTES, ...RULES, ...NEIGHS]) netns.ip(line);
    return netns;
  } catch (error) {
    netns[Symbol.dispose]();
    throw error;
  }
}

function isMade(netns: TestNetns, line: string): boolean {
  try {
    netns.ip(line);
    return true;
  } catch {
    return false;
  }
}
