import test, { type ExecutionContext } from 'ava';
import { NetlinkError } from '../../../netlink/netlink-error.ts';
import type { Request } from '../../../netlink/request.ts';
import { IFF_UP } from '../../../netlink/uapi/if-link.ts';
import { AF_INET, AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import { RTNH_F_ONLINK } from '../../../netlink/uapi/rtnetlink.ts';
import { TestNetns } from './support/test-netns.ts';

function codeOf(t: ExecutionContext, run: () => unknown): string {
  return t.throws(run, { instanceOf: NetlinkError })?.code ?? '';
}

test('link.add: makes a veth pair with both ends in their namespaces, described in one request', (t) => {
  using host = new TestNetns();
  using pod = new TestNetns();
  const ifindex = host.rtnl.link.add({
    kind: 'veth',
    ifname: 'eni0',
    ifindex: 70,
    address: '02:00:00:00:00:0a',
    mtu: 1400,
    group: 4007,
    up: true,
    ifalias: 'tke-eni/sandbox/eth0',
    peer: { ifname: 'eth0', ifindex: 71, address: '02:00:00:00:00:0b', mtu: 1400, netns: pod.netns },
  });
  t.is(ifindex, 70);
  t.like(host.ipJson('-d link show dev eni0')[0], {
    ifindex: 70,
    address: '02:00:00:00:00:0a',
    mtu: 1400,
    group: '4007',
    ifalias: 'tke-eni/sandbox/eth0',
    linkinfo: { info_kind: 'veth' },
  });
  t.like(pod.ipJson('link show dev eth0')[0], { ifindex: 71, address: '02:00:00:00:00:0b', mtu: 1400 });
  t.like(host.rtnl.link.get({ ifname: 'eni0' }), { ifindex: 70, kind: 'veth', ifalias: 'tke-eni/sandbox/eth0' });
});

test('link.addPair: tells the ifindex of both ends, each in its namespace', (t) => {
  using host = new TestNetns();
  using pod = new TestNetns();
  const pairs = [
    // The third pair's ends have different indexes by choice, the last one's the same.
    host.rtnl.link.addPair({ kind: 'veth', ifname: 'v0', peer: { ifname: 'v1' } }),
    host.rtnl.link.addPair({ kind: 'veth', ifname: 'v2', peer: { ifname: 'eth0', netns: pod.netns } }),
    host.rtnl.link.addPair({
      kind: 'veth',
      ifname: 'v3',
      ifindex: 70,
      peer: { ifname: 'eth1', ifindex: 71, netns: pod.netns },
    }),
    host.rtnl.link.addPair({
      kind: 'veth',
      ifname: 'v4',
      ifindex: 90,
      peer: { ifname: 'eth2', ifindex: 90, netns: pod.netns },
    }),
  ];
  const indexOf = (netns: TestNetns, ifname: string) => netns.ipJson(`link show dev ${ifname}`)[0]?.['ifindex'];
  const made = [
    [indexOf(host, 'v0'), indexOf(host, 'v1')],
    [indexOf(host, 'v2'), indexOf(pod, 'eth0')],
    [70, 71],
    [90, 90],
  ];
  for (const [at, { ifindex, peerIfindex }] of pairs.entries()) {
    t.is<unknown, unknown>(ifindex, made[at]?.[0]);
    // A kernel without an echo reports nothing; a wrong index would wire another link.
    t.true(peerIfindex === undefined || peerIfindex === made[at]?.[1], `pair ${at}: ${peerIfindex}`);
  }
  if (host.rtnl.link.get({ ifindex: 70 })?.link === 71) t.is(pairs[2]?.peerIfindex, 71);
});

test('link.set: changes, renames and moves a link', (t) => {
  using host = new TestNetns();
  using pod = new TestNetns();
  const ifindex = host.rtnl.link.add({ kind: 'veth', ifname: 'v0', peer: { ifname: 'v1' } });
  host.rtnl.link.set({ ifindex, mtu: 1300, address: '02:00:00:00:00:0c', group: 9, ifname: 'renamed', up: true });
  t.like(host.ipJson('link show dev renamed')[0], { mtu: 1300, address: '02:00:00:00:00:0c', group: '9' });
  t.is((host.rtnl.link.get({ ifindex })?.flags ?? 0) & IFF_UP, IFF_UP);
  host.rtnl.link.set({ ifindex, up: false, netns: pod.netns, ifname: 'eth0' });
  t.is(host.rtnl.link.get({ ifindex }), undefined);
  t.is(pod.ipJson('link show dev eth0').length, 1);
});

test('address: adds, replaces, lists and deletes both families', (t) => {
  using host = new TestNetns();
  const ifindex = host.addVethPair();
  host.rtnl.address.add({ ifindex, address: '10.0.1.50', prefixlen: 32 });
  host.rtnl.address.replace({ ifindex, address: '10.0.1.50', prefixlen: 32 });
  host.rtnl.address.add({ ifindex, address: 'fd00::50', prefixlen: 128, flags: 2 });
  t.is(
    codeOf(t, () => host.rtnl.address.add({ ifindex, address: '10.0.1.50', prefixlen: 32 })),
    'EEXIST',
  );
  const info = host.ipJson('addr show dev v0')[0]?.['addr_info'];
  t.like(info, { 0: { local: '10.0.1.50', prefixlen: 32 }, 1: { local: 'fd00::50', prefixlen: 128, nodad: true } });
  t.deepEqual(
    host.rtnl.address.list({ ifindex, family: AF_INET }).map(({ address }) => address),
    ['10.0.1.50'],
  );
  host.rtnl.address.delete({ ifindex, address: '10.0.1.50', prefixlen: 32 });
  t.deepEqual(host.rtnl.address.list({ ifindex, family: AF_INET }), []);
  t.deepEqual(host.rtnl.address.list({ ifindex: 999 }), []);
});

test('route: adds, replaces, looks up, lists and deletes in tables above 255', (t) => {
  using host = new TestNetns();
  const oif = host.addVethPair();
  // Without any local address the kernel takes every gateway for a broadcast address.
  host.rtnl.link.set({ ifindex: 1, up: true });
  host.rtnl.route.add({ dst: '10.0.1.50/32', oif, table: 3999, protocol: 84, scope: 253 });
  host.rtnl.route.add({ gateway: '10.7.0.1', oif, table: 4007, flags: RTNH_F_ONLINK, priority: 7, protocol: 84 });
  host.rtnl.route.replace({ dst: 'fd00::/64', gateway: 'fe80::1', oif, table: 4007, protocol: 84 });
  t.like(host.ipJson('route show table 3999')[0], { dst: '10.0.1.50', dev: 'v0', protocol: '84', scope: 'link' });
  t.like(host.ipJson('route show table 4007')[0], {
    dst: 'default',
    gateway: '10.7.0.1',
    metric: 7,
    flags: ['onlink'],
  });
  t.like(host.ipJson('-6 route show table 4007')[0], { dst: 'fd00::/64', gateway: 'fe80::1' });
  t.is(host.rtnl.route.list({ family: AF_INET, table: 3999, oif, protocol: 84 }).length, 1);
  t.is(host.rtnl.route.list({ family: AF_INET, table: 3999, protocol: 85 }).length, 0);
  t.is(host.rtnl.route.list({ family: AF_INET6, table: 4007 }).length, 1);
  t.deepEqual(host.rtnl.route.list({ family: AF_INET, table: 12345 }), []);
  host.rtnl.rule.add({ family: AF_INET, priority: 512, table: 3999 });
  t.like(host.rtnl.route.get({ dst: '10.0.1.50' }), { oif, table: 3999 });
  t.like(host.rtnl.route.get({ dst: '10.0.1.50', fibmatch: true }), { dst: '10.0.1.50/32', protocol: 84 });
  host.rtnl.route.add({ dst: 'fd00:1::50/128', oif, table: 3999, protocol: 84 });
  host.rtnl.rule.add({ family: AF_INET6, priority: 512, table: 3999 });
  t.like(host.rtnl.route.get({ dst: 'fd00:1::50' }), { oif, table: 3999 });
  t.like(host.rtnl.route.get({ dst: 'fd00:1::50', fibmatch: true }), { dst: 'fd00:1::50/128', protocol: 84 });
  for (const route of host.rtnl.route.list({ family: AF_INET, protocol: 84 })) {
    host.rtnl.route.delete(route);
  }
  t.deepEqual(host.ipJson('route show table 3999'), []);
  t.is(
    codeOf(t, () => host.rtnl.route.delete({ dst: '10.0.1.50/32', table: 3999 })),
    'ESRCH',
  );
});

test('route: reads next hops and metrics, and writes back what it read', (t) => {
  using host = new TestNetns();
  const oif = host.addVethPair();
  host.ip('addr add 10.0.0.9/24 dev v0');
  host.ip('route add 10.8.0.0/16 mtu 1400 nexthop via 10.0.0.1 dev v0 weight 2 nexthop dev v1');
  const [route] = host.rtnl.route.list({ family: AF_INET, table: 254, oif }).filter(({ dst }) => dst === '10.8.0.0/16');
  t.like(route, { metrics: { mtu: 1400 }, multipath: [{ gateway: '10.0.0.1', oif, hops: 1 }, { hops: 0 }] });
  const before = host.ipJson('route show 10.8.0.0/16');
  if (route !== undefined) {
    host.rtnl.route.delete(route);
    t.deepEqual(host.ipJson('route show 10.8.0.0/16'), []);
    host.rtnl.route.add(route);
  }
  t.deepEqual(host.ipJson('route show 10.8.0.0/16'), before);
});

test('rule: adds once, lists and deletes by what it read', (t) => {
  using host = new TestNetns();
  const rules = [
    { priority: 512, table: 3999, protocol: 84, family: AF_INET },
    { priority: 1536, fwmark: 0x50000, fwmask: 0xff0000, table: 4007, protocol: 84, family: AF_INET },
    { priority: 1537, src: '10.0.0.4/32', iifname: 'lo', table: 4007, suppressPrefixlength: 0, protocol: 84 },
    { priority: 1537, dst: 'fd00::4/128', table: 4007, protocol: 84 },
  ];
  for (const rule of rules) {
    host.rtnl.rule.add(rule);
    t.is(
      codeOf(t, () => host.rtnl.rule.add(rule)),
      'EEXIST',
    );
  }
  const ofOurs = (line: string) => host.ipJson(line).filter((rule) => rule['protocol'] === '84');
  t.like(ofOurs('rule show'), [
    { priority: 512, table: '3999' },
    { priority: 1536, fwmark: '0x50000', fwmask: '0xff0000', table: '4007' },
    { priority: 1537, src: '10.0.0.4', iif: 'lo', suppress_prefixlen: 0 },
  ]);
  t.like(ofOurs('-6 rule show'), [{ priority: 1537, dst: 'fd00::4' }]);
  for (const family of [AF_INET, AF_INET6]) {
    for (const rule of host.rtnl.rule.list({ family, protocol: 84 })) {
      host.rtnl.rule.delete(rule);
    }
  }
  t.deepEqual([...ofOurs('rule show'), ...ofOurs('-6 rule show')], []);
});

test('rule.list: misses none of 2,000', (t) => {
  using host = new TestNetns();
  const requests: Request[] = Array.from({ length: 2000 }, (_, i) => ({
    object: 'rule',
    verb: 'add',
    spec: { family: AF_INET, priority: 1000 + i, table: 5000 + i, protocol: 84 },
  }));
  t.true(host.rtnl.execute(requests).every(({ kind }) => kind === 'ok'));
  t.deepEqual(
    host.rtnl.rule.list({ family: AF_INET, protocol: 84 }).map(({ table }) => table),
    requests.map((_, i) => 5000 + i),
  );
});

test('neigh: adds, replaces, lists and deletes', (t) => {
  using host = new TestNetns();
  const ifindex = host.addVethPair();
  host.rtnl.neigh.add({ ifindex, dst: '169.254.1.1', lladdr: '02:00:00:00:00:01' });
  host.rtnl.neigh.replace({ ifindex, dst: '169.254.1.1', lladdr: '02:00:00:00:00:02' });
  host.rtnl.neigh.replace({ ifindex, dst: 'fe80::1', lladdr: '02:00:00:00:00:03' });
  t.like(host.ipJson('neigh show dev v0 nud permanent'), [
    { dst: '169.254.1.1', lladdr: '02:00:00:00:00:02' },
    { dst: 'fe80::1', lladdr: '02:00:00:00:00:03' },
  ]);
  t.deepEqual(
    host.rtnl.neigh.list({ ifindex, family: AF_INET }).map(({ dst }) => dst),
    ['169.254.1.1'],
  );
  host.rtnl.neigh.delete({ ifindex, dst: '169.254.1.1' });
  t.is(host.ipJson('neigh show dev v0 nud permanent').length, 1);
});

test('execute: adds 10,000 routes in batches, and list reads them all', (t) => {
  using host = new TestNetns();
  const oif = host.addVethPair();
  const requests: Request[] = Array.from({ length: 10_000 }, (_, i) => ({
    object: 'route',
    verb: 'add',
    spec: { dst: `10.1.${i >> 8}.${i & 255}/32`, oif, table: 4242 },
  }));
  t.true(host.rtnl.execute(requests).every(({ kind }) => kind === 'ok'));
  t.is(new Set(host.rtnl.route.list({ family: AF_INET, table: 4242 }).map(({ dst }) => dst)).size, 10_000);
  t.is(host.ipJson('route show table 4242').length, 10_000);
});

test('NetlinkError: names the attribute that the kernel points at', (t) => {
  using host = new TestNetns();
  // RTA_OIF must be 4 bytes long; our encoder writes nothing else, so it goes in as an unknown attribute.
  const unknown = [{ type: 4, payload: Uint8Array.of(1, 2) }];
  const error = t.throws(() => host.rtnl.route.add({ dst: '10.1.0.0/16', unknown }), { instanceOf: NetlinkError });
  t.is(error?.code, 'ERANGE');
  t.is(error?.extack?.attribute, 'oif');
  t.regex(error?.message ?? '', /^ERANGE: ip route add 10\.1\.0\.0\/16: .*attribute oif \(RTM_NEWROUTE\)$/);
});

test('capabilities: are all there on this kernel', (t) => {
  using host = new TestNetns();
  t.deepEqual(host.rtnl.capabilities, { extendedAck: true, cappedAck: true, strictDump: true });
});
