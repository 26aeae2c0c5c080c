import { deepStrictEqual } from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { evaluateSourceCheck } from '../../../inspection/explain/evaluate-source-check.ts';
import { findRoute, type RouteResult } from '../../../inspection/explain/find-route.ts';
import { type Flow, queryOf } from '../../../inspection/explain/flow.ts';
import { readNetnsFacts } from '../../../inspection/node/read-netns-facts.ts';
import { isNetlinkError } from '../../../netlink/netlink-error.ts';
import type { RouteMessage } from '../../../netlink/route-message.ts';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import { RTN_LOCAL } from '../../../netlink/uapi/rtnetlink.ts';
import { TestNetns } from '../../kernel/netlink/support/test-netns.ts';
import { assertLaw } from '../../support/law.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import { buildLinks, buildWorld, LINKS, type WantedFlow, type World, world } from './fib-world.ts';

// Our reading of rules and routes beside the kernel's own answer, on rules and routes made by chance. Each world is asked
// about 25 packets by netlink, and about three of them by `ip route get fibmatch`, so that our own codec has a judge too.

const WORLDS = IS_LONG ? 25 : 10;
const ASKED_BY_IP = 3;

/** What both must agree on. */
type Verdict = string | { table: number; dst: string; type: number; tos: number; metric: number; oifs: number[] };

function verdictOf(route: RouteMessage): Verdict {
  const oifs = route.multipath?.map(({ oif }) => oif ?? 0) ?? [route.oif ?? 0];
  const { table, type, tos, dst = 'default', priority: metric = 0 } = route;
  return { table, dst, type, tos, metric, oifs: oifs.sort((a, b) => a - b) };
}

function readingVerdict(reading: RouteResult, flow: Flow): Verdict {
  if (reading.kind === 'route') return verdictOf(reading.route);
  // Asked about a packet from outside, IPv4 says EINVAL for whatever it would drop without an answer to the sender.
  return flow.family === 4 && flow.iif !== undefined && reading.route === undefined ? 'refused' : reading.code;
}

function kernelVerdict(netns: TestNetns, flow: Flow): Verdict {
  try {
    return verdictOf(netns.rtnl.route.get(queryOf(flow, true)));
  } catch (error) {
    if (isNetlinkError(error)) return error.code;
    throw error;
  }
}

function ipVerdict(netns: TestNetns, wanted: WantedFlow): Verdict {
  const { dst, src, iif, mark, tos, ipProto, sport, dport, uid } = wanted;
  const words = [
    ...['-d', '-N', '-j', 'route', 'get', 'fibmatch', dst],
    ...(src === undefined ? [] : ['from', src]),
    ...(iif === undefined ? [] : ['iif', iif]),
    ...(mark === 0 ? [] : ['mark', String(mark)]),
    ...['tos', `0x${(tos ?? 0).toString(16)}`, 'uid', String(uid ?? 0)],
    ...['ipproto', String(ipProto), 'sport', String(sport), 'dport', String(dport)],
  ];
  try {
    const [route] = JSON.parse(execFileSync('ip', ['-n', netns.name, ...words], { encoding: 'utf8', stdio: 'pipe' }));
    const devs: readonly string[] = route.nexthops?.map((hop: { dev: string }) => hop.dev) ?? [route.dev];
    return `${String(route.table ?? 254)} ${route.dst} ${[...devs].sort().join(' ')}`;
  } catch {
    return 'refused';
  }
}

function shownAsIp(netns: TestNetns, reading: RouteResult): Verdict {
  if (reading.kind === 'refused') return 'refused';
  const { route } = reading;
  const hops = route.multipath?.map(({ oif }) => oif ?? 0) ?? [route.oif ?? 0];
  const links = netns.rtnl.link.list();
  const devs = hops.map((oif) => links.find(({ ifindex }) => ifindex === oif)?.ifname ?? '');
  return `${route.table} ${(route.dst ?? 'default').replace(route.family === AF_INET ? /\/32$/ : /\/128$/, '')} ${devs.sort().join(' ')}`;
}

function agree(netns: TestNetns, input: World): void {
  buildWorld(netns.name, input);
  const facts = readNetnsFacts(netns.netns);
  const indexOf = (name: string) => facts.links.find(({ ifname }) => ifname === name)?.ifindex ?? 0;
  for (const [index, wanted] of input.flows.entries()) {
    const { iif, ...rest } = wanted;
    const flow: Flow = iif === undefined ? rest : { ...rest, iif: indexOf(iif) };
    const reading = findRoute(facts, flow);
    const ours = readingVerdict(reading, flow);
    const kernel = kernelVerdict(netns, flow);
    const isRefusal = ours === 'refused' && typeof kernel === 'string';
    if (!isRefusal) deepStrictEqual(ours, kernel, `${JSON.stringify(wanted)}\n${JSON.stringify(reading)}`);
    if (index < ASKED_BY_IP)
      deepStrictEqual(shownAsIp(netns, reading), ipVerdict(netns, wanted), JSON.stringify(wanted));
  }
}

/** One combination of the settings that source validation reads. */
type Settings = {
  readonly all: number;
  readonly own: number;
  readonly usesMark: number;
  readonly acceptsLocal: number;
};

const settings: fc.Arbitrary<Settings> = fc.record({
  all: fc.constantFrom(0, 0, 1, 2),
  own: fc.constantFrom(0, 1, 2),
  usesMark: fc.constantFrom(0, 1),
  acceptsLocal: fc.constantFrom(0, 0, 1),
});

function setSourceCheck(netns: TestNetns, { all, own, usesMark, acceptsLocal }: Settings): void {
  const lines = ['all', ...LINKS].flatMap((link) => [
    `echo ${link === 'all' ? all : own} > /proc/sys/net/ipv4/conf/${link}/rp_filter`,
    `echo ${usesMark} > /proc/sys/net/ipv4/conf/${link}/src_valid_mark`,
    `echo ${acceptsLocal} > /proc/sys/net/ipv4/conf/${link}/accept_local`,
  ]);
  execFileSync('ip', ['netns', 'exec', netns.name, 'sh', '-e'], { input: lines.join('\n') });
}

/** The kernel's lookup of a packet from outside includes source validation: it refuses what would be dropped. */
function dropsAlike(netns: TestNetns, input: World, chosen: Settings): readonly boolean[] {
  buildWorld(netns.name, input);
  setSourceCheck(netns, chosen);
  const facts = readNetnsFacts(netns.netns);
  const drops: boolean[] = [];
  for (const { iif, src = '', ...rest } of input.flows) {
    const link = facts.links.find(({ ifname }) => ifname === iif);
    if (link === undefined) continue;
    const flow: Flow = { ...rest, src, iif: link.ifindex };
    const reading = findRoute(facts, flow);
    // Of several next hops the kernel takes one by a hash: which, the check would have to know.
    if (reading.kind === 'refused' || reading.nexthops.length > 1) continue;
    const oif = reading.route.type === RTN_LOCAL ? undefined : reading.nexthops[0]?.oif;
    const packet = { ...rest, src, iif: link.ifindex };
    const check = evaluateSourceCheck(facts, packet, oif);
    const kernel = kernelVerdict(netns, flow);
    deepStrictEqual(
      check.isDropped,
      typeof kernel === 'string',
      JSON.stringify({ flow, chosen, check, reading, kernel }),
    );
    drops.push(check.isDropped);
  }
  return drops;
}

test('evaluateSourceCheck: drops what the kernel drops', async (t) => {
  using netns = new TestNetns();
  buildLinks(netns.name);
  const drops: boolean[] = [];
  await assertLaw(
    t,
    () =>
      fc.property(world(4), settings, (input, chosen) => {
        drops.push(...dropsAlike(netns, input, chosen));
      }),
    { numRuns: WORLDS, endOnFailure: true },
  );
  t.true(drops.includes(true) && drops.includes(false));
});

const OFF: Settings = { all: 0, own: 0, usesMark: 0, acceptsLocal: 0 };

for (const [rules, isDropped] of [
  [['rule add iif lo ipproto udp pref 11 lookup 100'], false],
  [['rule add iif lo ipproto udp pref 11 lookup 100', 'rule add iif v1 dport 80 pref 12 lookup 3999'], true],
  [['rule add ipproto udp pref 11 lookup 100'], true],
] as const) {
  test(`evaluateSourceCheck: reads the protocol where the kernel does, with ${rules.join(', ')}`, (t) => {
    using netns = new TestNetns();
    buildLinks(netns.name);
    // Of the sender's address: by v2 in the main table, by v0 where the rule leads.
    const routes = ['route add 10.0.0.0/7 table 254 dev v2', 'route add 0.0.0.0/0 table 100 dev v0'];
    const packet = { family: 4, dst: '10.1.1.1', src: '10.2.2.2', iif: 'v2', mark: 0 } as const;
    const flows = [{ ...packet, ipProto: 17, sport: 443, dport: 80 }];
    t.deepEqual(dropsAlike(netns, { family: 4, rules, routes, flows }, { ...OFF, all: 1 }), [isDropped]);
  });
}

async function check(t: ExecutionContext, family: 4 | 6, linkdown: string): Promise<void> {
  using netns = new TestNetns();
  buildLinks(netns.name);
  const scope = `/proc/sys/net/ipv${family}/conf/all/ignore_routes_with_linkdown`;
  execFileSync('ip', ['netns', 'exec', netns.name, 'sh', '-c', `echo ${linkdown} > ${scope}`]);
  await assertLaw(t, () => fc.property(world(family), (input) => agree(netns, input)), {
    numRuns: WORLDS,
    endOnFailure: true,
  });
}

/** One destination by a link without carrier and, with a worse metric, by one with carrier. */
function oifWithLinkdown(netns: TestNetns, family: 4 | 6, ignores: 0 | 1): string | undefined {
  const dst = family === 4 ? '198.51.100.0/24' : 'fd99::/64';
  const scope = `/proc/sys/net/ipv${family}/conf/all/ignore_routes_with_linkdown`;
  execFileSync('ip', ['netns', 'exec', netns.name, 'sh', '-c', `echo ${ignores} > ${scope}`]);
  for (const [metric, dev] of [
    ['10', 'v3'],
    ['20', 'v0'],
  ] as const) {
    execFileSync('ip', ['-n', netns.name, `-${family}`, 'route', 'replace', dst, 'dev', dev, 'metric', metric]);
  }
  const facts = readNetnsFacts(netns.netns);
  const flow: Flow = { family, dst: family === 4 ? '198.51.100.7' : 'fd99::7', mark: 0 };
  const reading = findRoute(facts, flow);
  deepStrictEqual(readingVerdict(reading, flow), kernelVerdict(netns, flow));
  const oif = reading.kind === 'route' ? reading.nexthops[0]?.oif : undefined;
  return facts.links.find(({ ifindex }) => ifindex === oif)?.ifname;
}

/** One route by v3, which has no carrier, and by v1, whose group is 7; a rule suppresses what leads there. */
function routeOverGroup(netns: TestNetns, hops: readonly string[]): RouteResult['kind'] {
  const scope = '/proc/sys/net/ipv4/conf/all/ignore_routes_with_linkdown';
  execFileSync('ip', ['netns', 'exec', netns.name, 'sh', '-c', `echo 1 > ${scope}`]);
  const nexthops = hops.flatMap((dev) => ['nexthop', 'via', '10.77.0.9', 'dev', dev, 'onlink']);
  const route = ['route', 'add', '198.51.100.0/24', 'table', '100', ...nexthops];
  const rule = ['rule', 'add', 'pref', '18', 'lookup', '100', 'suppress_ifgroup', '7'];
  for (const words of [route, rule]) execFileSync('ip', ['-n', netns.name, ...words]);
  const flow: Flow = { family: 4, dst: '198.51.100.7', mark: 0 };
  const reading = findRoute(readNetnsFacts(netns.netns), flow);
  deepStrictEqual(readingVerdict(reading, flow), kernelVerdict(netns, flow));
  return reading.kind;
}

for (const [hops, kind] of [
  [['v3', 'v1'], 'route'],
  [['v1', 'v3'], 'refused'],
] as const) {
  test(`findRoute: suppresses by the first next hop, dead or not, which is ${hops[0]}`, (t) => {
    using netns = new TestNetns();
    buildLinks(netns.name);
    t.is(routeOverGroup(netns, hops), kind);
  });
}

for (const family of [4, 6] as const) {
  test(`findRoute: passes over a link without carrier only where the kernel is told to, IPv${family}`, (t) => {
    using netns = new TestNetns();
    buildLinks(netns.name);
    t.is(oifWithLinkdown(netns, family, 0), 'v3');
    t.is(oifWithLinkdown(netns, family, 1), 'v0');
  });
  test(`findRoute: answers as the kernel does, IPv${family}`, (t) => check(t, family, '0'));
  test(`findRoute: leaves routes without carrier out where the kernel does, IPv${family}`, (t) =>
    check(t, family, '1'));
}
