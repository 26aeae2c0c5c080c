import test, { type ExecutionContext } from 'ava';
import type { IpObject } from '../../../cli/commands/dump/ip-names.ts';
import { openIpNames } from '../../../cli/commands/dump/open-ip-names.ts';
import { renderDumpJson, type Topic } from '../../../cli/commands/dump/render-dump-json.ts';
import { withoutKernelNeighs } from '../../../cli/commands/dump/select-dump.ts';
import { readNetnsFacts } from '../../../inspection/node/read-netns-facts.ts';
import { warmThreadPool } from '../../../netlink/netns.ts';
import { AF_INET, AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { TestNetns } from '../netlink/support/test-netns.ts';
import { openRichNetns } from './rich-netns.ts';

// One namespace with something of everything; each of our JSON objects must be the one that `ip -j` prints. Of the data of a kind
// of links ours has a part: what it has must be equal.

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
  netns = openRichNetns((line) => t.log(line));
  // An address that is still being tried brings routes and groups in a moment: between our reading and ip's, perhaps.
  const isTried = (one: IpObject): boolean => JSON.stringify(one).includes('"tentative":true');
  await waitUntil(() => !netns.ipJson('address').some(isTried), { what: 'every address is tried', timeoutMs: 20_000 });
});
test.after.always(() => netns[Symbol.dispose]());

type Filter = { readonly all?: boolean; readonly family?: number; readonly table?: number };

function ours(topic: Topic, isDetailed: boolean, filter: Filter = {}) {
  const facts = readNetnsFacts(netns.netns, { sysctls: false });
  const names = openIpNames('/', new Map(facts.links.map(({ ifindex, ifname }) => [ifindex, ifname])));
  const shown = filter.all === true ? facts : withoutKernelNeighs(facts);
  const rules = shown.rules.filter(({ family }) => filter.family === undefined || family === filter.family);
  const routes = shown.routes.filter(({ table }) => filter.table === undefined || table === filter.table);
  return renderDumpJson(topic, { pod: undefined, facts: { ...shown, rules, routes }, unfiltered: facts }, names, {
    isDetailed,
    isOneTable: filter.table !== undefined,
  });
}

/** Members with the data of a kind of links. */
const KIND_DATA: readonly string[] = ['info_data', 'info_slave_data'];

/** Compares object by object; members that only a newer `ip` prints are left out where this one does not print them. */
function assertSame(t: ExecutionContext, mine: readonly IpObject[], theirs: readonly IpObject[]): void {
  t.true(theirs.length > 0);
  t.deepEqual(
    mine.map((object, index) => steady(likeIp(object, theirs[index]))),
    theirs.map((object, index) => steady(withKnownData(object, mine[index]))),
  );
}

/** Leaves out data of a kind that ours has not. */
function withKnownData(theirs: IpObject, mine: IpObject = {}): IpObject {
  const linkinfo = theirs['linkinfo'];
  if (!isObject(linkinfo)) return theirs;
  const ours = isObject(mine['linkinfo']) ? mine['linkinfo'] : {};
  const known = Object.entries(linkinfo).flatMap(([name, value]) => {
    if (!KIND_DATA.includes(name) || !isObject(value)) return [[name, value] as const];
    const data = ours[name];
    if (!isObject(data)) return [];
    return [[name, Object.fromEntries(Object.entries(value).filter(([member]) => member in data))] as const];
  });
  return { ...theirs, linkinfo: Object.fromEntries(known) };
}

function isObject(value: unknown): value is IpObject {
  return typeof value === 'object' && value !== null;
}

test.serial('links: of a bridge and its port there is what an agent sets', (t) => {
  const infos = ours('links', true).flatMap(({ linkinfo }) => (isObject(linkinfo) ? [linkinfo] : []));
  const membersOf = (name: string) =>
    infos.flatMap((info) => (isObject(info[name]) ? [Object.keys(info[name]).toSorted()] : []));
  t.deepEqual(membersOf('info_data')[0], [
    ...['ageing_time', 'forward_delay', 'hello_time', 'max_age', 'priority', 'stp_state', 'vlan_default_pvid'],
    'vlan_filtering',
  ]);
  t.deepEqual(membersOf('info_slave_data')[0], [
    ...['bcast_flood', 'cost', 'flood', 'hairpin', 'isolated', 'learning', 'locked', 'priority', 'proxy_arp', 'state'],
  ]);
});

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
  for (const table of [3999, 4003, 100, 254]) {
    test.serial(`routes: those of one table are those of ${title} route show table ${table}`, (t) => {
      const theirs = ['-4 ', '-6 '].flatMap((option) => netns.ipJson(`${option}${flag}route show table ${table}`));
      assertSame(t, ours('routes', isDetailed, { table }), theirs);
    });
  }
}
