import test, { type ExecutionContext } from 'ava';
import { withoutKernelNeighs } from '../../../cli/dump/find-dump.ts';
import type { IpObject } from '../../../cli/dump/ip-names.ts';
import { openIpNames } from '../../../cli/dump/open-ip-names.ts';
import { renderDumpJson, type Topic } from '../../../cli/dump/render-dump-json.ts';
import { RouteJsonWriter } from '../../../cli/dump/route-json-writer.ts';
import { readNetnsFacts } from '../../../cli/node/read-netns-facts.ts';
import { warmThreadPool } from '../../../netlink/netns.ts';
import { AF_INET, AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';

// One namespace with something of everything; each of our JSON objects must be the one that `ip -j` prints.

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

/** What `ip` of this machine may be too old to print; the rest must be equal. */
const NEWER_MEMBERS: Readonly<Record<string, string>> = {
  protocol: 'of an address: iproute2 6.3',
  gso_ipv4_max_size: 'iproute2 6.3',
  gro_ipv4_max_size: 'iproute2 6.3',
  mab: 'iproute2 6.2',
};

let netns: TestNetns;

test.before(async (t) => {
  await warmThreadPool();
  netns = new TestNetns();
  netns.addVethPair();
  const made = OPTIONAL_LINKS.filter((line) => {
    try {
      netns.ip(line);
      return true;
    } catch {
      t.log(`this kernel cannot: ip ${line}`);
      return false;
    }
  });
  t.true(made.length >= 3, 'hardly any kind of link can be tried here');
  for (const line of [...LINKS, ...ADDRESSES, ...ROUTES, ...RULES, ...NEIGHS]) netns.ip(line);
});
test.after.always(() => netns[Symbol.dispose]());

function ours(topic: Topic, isDetailed: boolean, filter: { readonly all?: boolean; readonly family?: number } = {}) {
  const facts = readNetnsFacts(netns.netns, { sysctls: false });
  const names = openIpNames('/', new Map(facts.links.map(({ ifindex, ifname }) => [ifindex, ifname])));
  const shown = filter.all === true ? facts : withoutKernelNeighs(facts);
  const rules = shown.rules.filter(({ family }) => filter.family === undefined || family === filter.family);
  return renderDumpJson(topic, { pod: undefined, facts: { ...shown, rules } }, names, {
    isDetailed,
    isOneTable: false,
  });
}

/** Compares object by object; members that only a newer `ip` prints are left out where this one does not print them. */
function assertSame(t: ExecutionContext, mine: readonly IpObject[], theirs: readonly IpObject[]): void {
  t.true(theirs.length > 0);
  t.deepEqual(
    mine.map((object, index) => steady(likeIp(object, theirs[index]))),
    theirs.map(steady),
  );
}

function likeIp(mine: unknown, theirs: unknown): unknown {
  if (Array.isArray(mine)) {
    return mine.map((each, index) => likeIp(each, Array.isArray(theirs) ? theirs[index] : undefined));
  }
  if (typeof mine !== 'object' || mine === null) return mine;
  const other: IpObject = typeof theirs === 'object' && theirs !== null ? (theirs as IpObject) : {};
  const kept = Object.entries(mine).filter(([name]) => name in other || !(name in NEWER_MEMBERS));
  return Object.fromEntries(kept.map(([name, value]) => [name, likeIp(value, other[name])]));
}

/** What changes between two readings: timers, and times that are left. */
function steady(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (name, member: unknown) =>
      /_timer$|^expires$|_life_time$/.test(name) && typeof member === 'number' && member < 2 ** 31 ? 'a time' : member,
    ),
  );
}

for (const isDetailed of [false, true]) {
  const flag = isDetailed ? '-d ' : '';
  const title = isDetailed ? 'ip -j -d' : 'ip -j';
  test.serial(`routes: are those of ${title} route`, (t) => {
    assertSame(t, ours('routes', isDetailed), netns.ipJson(`${flag}route show table all`));
  });
  for (const [family, option] of [
    [AF_INET, '-4'],
    [AF_INET6, '-6'],
  ] as const) {
    test.serial(`rules: are those of ${title} ${option} rule`, (t) => {
      assertSame(t, ours('rules', isDetailed, { family }), netns.ipJson(`${option} ${flag}rule`));
    });
  }
  test.serial(`links: are those of ${title} link`, (t) => {
    assertSame(t, ours('links', isDetailed), netns.ipJson(`${flag}link`));
  });
  test.serial(`addrs: are those of ${title} address`, (t) => {
    assertSame(t, ours('addrs', isDetailed), netns.ipJson(`${flag}address`));
  });
  test.serial(`neigh: are those of ${title} neigh`, (t) => {
    assertSame(t, ours('neigh', isDetailed), netns.ipJson(`${flag}neigh`));
    assertSame(t, ours('neigh', isDetailed, { all: true }), netns.ipJson(`${flag}neigh show nud all`));
  });
  for (const table of [undefined, 3999, 4003, 100, 254]) {
    test.serial(`RouteJsonWriter: writes what ${title} route show table ${table ?? 'all'} prints`, (t) => {
      const names = openIpNames('/', netns.rtnl.link.names());
      const writer = new RouteJsonWriter(names, { isDetailed, isOneTable: table !== undefined }, table);
      for (const family of [AF_INET, AF_INET6]) {
        const filter = { family, ...(table === undefined ? {} : { table }) };
        netns.rtnl.route.listAs(filter, (message, start, end) => writer.add(message, start, end));
      }
      const families = table === undefined ? [''] : ['-4 ', '-6 '];
      const theirs = families.flatMap((option) => netns.ipJson(`${option}${flag}route show table ${table ?? 'all'}`));
      assertSame(t, JSON.parse(writer.end()), theirs);
    });
  }
}
