import test from 'ava';
import { ADDRESS } from '../../netlink/address-message.ts';
import { viewOf } from '../../netlink/byte-view.ts';
import { ByteWriter } from '../../netlink/byte-writer.ts';
import { CodecError } from '../../netlink/codec-error.ts';
import { readExtack } from '../../netlink/extack.ts';
import { LINK } from '../../netlink/link-message.ts';
import type { MessageCodec } from '../../netlink/message-codec.ts';
import { NEIGH } from '../../netlink/neigh-message.ts';
import { NETCONF } from '../../netlink/netconf-message.ts';
import { QDISC } from '../../netlink/qdisc-message.ts';
import { ROUTE } from '../../netlink/route-message.ts';
import { RULE } from '../../netlink/rule-message.ts';
import { filterProgram, TRAFFIC_FILTER } from '../../netlink/traffic-filter-message.ts';
import { bodyOf, readCapture } from './support/capture.ts';

type Known = Readonly<Record<string, unknown>>;

/** What the kernel sent reads as `want`, and what was read is written in a way that reads the same. */
const golden = test.macro(
  <M extends object>(t: import('ava').ExecutionContext, file: string, codec: MessageCodec<M>, want: Known) => {
    const message = codec.decode(bodyOf(readCapture(`${file}.answer`)));
    t.like(message, want);
    const writer = new ByteWriter(8192);
    codec.write(writer, message);
    t.deepEqual(codec.decode(writer.written()), message);
  },
);

test('ROUTE: host route in a table above 255', golden, 'route-host', ROUTE, {
  family: 2,
  table: 3999,
  dst: '10.0.1.50/32',
  oif: 3,
  protocol: 84,
  scope: 253,
  type: 1,
  flags: 0,
  unknown: [],
});
test('ROUTE: default route with metrics', golden, 'route-default', ROUTE, {
  table: 100,
  gateway: '10.7.0.1',
  prefsrc: '10.0.0.9',
  priority: 7,
  flags: 4,
  metrics: { mtu: 1400, advmss: 1360 },
  unknown: [],
});
test('ROUTE: next hops of both families', golden, 'route-multipath', ROUTE, {
  dst: '10.8.0.0/16',
  table: 101,
  multipath: [
    { flags: 0, hops: 1, oif: 3, gateway: '10.0.0.1' },
    { flags: 0, hops: 0, oif: 2, via: 'fe80::1' },
  ],
});
test('ROUTE: IPv6 route', golden, 'route-v6', ROUTE, {
  family: 10,
  dst: 'fd00:1::/64',
  gateway: 'fe80::1',
  table: 102,
  priority: 5,
  pref: 0,
});
test('ROUTE: answer of a lookup', golden, 'route-got', ROUTE, { dst: '10.0.0.0/24', oif: 3, prefsrc: '10.0.0.9' });
test('RULE: from an address', golden, 'rule-from', RULE, {
  family: 2,
  src: '10.0.1.50/32',
  table: 4007,
  priority: 1536,
  protocol: 84,
  action: 1,
  unknown: [],
});
test('RULE: by mark', golden, 'rule-fwmark', RULE, { fwmark: 0x50000, fwmask: 0xff0000, table: 100, priority: 7 });
test('RULE: IPv6 with an interface', golden, 'rule-v6', RULE, {
  family: 10,
  dst: 'fd00::/64',
  iifname: 'lo',
  table: 254,
  priority: 7,
});
test('ADDRESS: IPv4', golden, 'address-v4', ADDRESS, {
  family: 2,
  address: '10.0.0.9',
  local: '10.0.0.9',
  prefixlen: 24,
  label: 'v0',
  flags: 0x80,
});
test('ADDRESS: IPv6', golden, 'address-v6', ADDRESS, { family: 10, address: 'fd00::50', prefixlen: 128, flags: 0x82 });
test('NEIGH: permanent', golden, 'neigh', NEIGH, {
  family: 2,
  dst: '169.254.1.1',
  lladdr: '02:00:00:00:00:03',
  state: 0x80,
  ifindex: 3,
});
test('NETCONF: IPv4 settings of a link', golden, 'netconf', NETCONF, {
  family: 2,
  ifindex: 3,
  forwarding: 0,
  rpFilter: 0,
  unknown: [],
});
test('NETCONF: IPv6 settings of a link', golden, 'netconf-v6', NETCONF, {
  family: 10,
  ifindex: 3,
  forwarding: 0,
  unknown: [],
});
test('LINK: veth whose other end is elsewhere', golden, 'link-veth', LINK, {
  ifname: 'v0',
  kind: 'veth',
  address: '02:00:00:00:00:01',
  group: 4007,
  ifalias: 'tke/x',
  mtu: 1500,
  linkNetnsid: 0,
});
test('LINK: bridge', golden, 'link-bridge', LINK, {
  ifname: 'br0',
  kind: 'bridge',
  address: '02:00:00:00:00:04',
  mtu: 1500,
});

test('LINK: port of a bridge', golden, 'link-bridge-port', LINK, {
  ifname: 'v0',
  slaveKind: 'bridge',
  linkmode: 0,
  allmulti: 1,
});
test('LINK: a kind that is not read, VXLAN', golden, 'link-vxlan', LINK, { ifname: 'vx0', kind: 'vxlan' });
test('LINK: MACVLAN', golden, 'link-macvlan', LINK, { ifname: 'mv0', kind: 'macvlan' });
test('LINK: TAP', golden, 'link-tap', LINK, { ifname: 'tap0', kind: 'tun', type: 1 });
test('LINK: another name, and no link-local address', golden, 'link-altname', LINK, {
  altNames: ['another-name-of-v0'],
  gsoMaxSegs: 65535,
});
test('ADDRESS: one whose time is limited', golden, 'address-lifetime', ADDRESS, { address: 'fd00::50', unknown: [] });
test('NEIGH: learned from elsewhere', golden, 'neigh-learned', NEIGH, {
  dst: '10.0.0.78',
  state: 4,
  flags: 0x10,
  protocol: 84,
  unknown: [],
});
test('ROUTE: IPv6 route that expires', golden, 'route-expires', ROUTE, {
  dst: 'fd00:2::/64',
  pref: 1,
  metrics: { ccAlgo: 'reno' },
  unknown: [],
});

test('LINK: reads what the kinds of links keep', (t) => {
  const read = (name: string) => LINK.decode(bodyOf(readCapture(`${name}.answer`)));
  t.like(read('link-bridge-port').bridgePort, { cost: 7, mode: 1, isolated: 1, state: 3 });
  t.true((read('link-vxlan').kindData?.length ?? 0) > 100, 'bytes of a kind that is not read stay');
  t.like(read('link-macvlan').macvlan, { mode: 4 });
  t.is(read('link-altname').afSpec?.inet6?.addrGenMode, 1);
});

test('ADDRESS, NEIGH, ROUTE: read the times that are left', (t) => {
  const { cacheinfo } = ADDRESS.decode(bodyOf(readCapture('address-lifetime.answer')));
  t.true((cacheinfo?.valid ?? 0) > 4900 && (cacheinfo?.valid ?? 0) <= 5000);
  t.true((cacheinfo?.preferred ?? 0) > 2900 && (cacheinfo?.preferred ?? 0) <= 3000);
  t.like(NEIGH.decode(bodyOf(readCapture('neigh-learned.answer'))).cacheinfo, { refcnt: 0 });
  const expires = ROUTE.decode(bodyOf(readCapture('route-expires.answer'))).cacheinfo?.expires ?? 0;
  t.true(expires > 490_000 && expires <= 500_000, 'hundredths of a second');
});

test('LINK: reads the parameters of a bridge', (t) => {
  const { bridge } = LINK.decode(bodyOf(readCapture('link-bridge.answer')));
  t.like(bridge, { forwardDelay: 1500, stpState: 0, vlanFiltering: 0 });
});

test('LINK: keeps the data of a link whose kind is missing', (t) => {
  const bytes = Buffer.from([...Array(16).fill(0), 8, 0, 18, 0, 4, 0, 2, 0]);
  const writer = new ByteWriter(64);
  LINK.write(writer, { ...LINK.decode(bytes), ifname: 'x' });
  t.deepEqual(LINK.decode(writer.written()).kindData, new Uint8Array(0));
});

test('RULE: keeps an attribute of a kernel to come, flags of its number included', (t) => {
  const bytes = bodyOf(readCapture('rule-from.answer'));
  const future = Buffer.from([7, 0, 200, 0x80, 1, 2, 3, 0]);
  const rule = RULE.decode(Buffer.concat([bytes, future]));
  t.deepEqual(rule.unknown, [{ type: 0x80c8, payload: Uint8Array.of(1, 2, 3) }]);
  const writer = new ByteWriter(4096);
  RULE.write(writer, rule);
  t.deepEqual(Buffer.from(writer.written()).subarray(-8), future);
});

test('RULE: keeps a known attribute of an unexpected length as unknown', (t) => {
  const bytes = bodyOf(readCapture('rule-from.answer'));
  const rule = RULE.decode(Buffer.concat([bytes, Buffer.from([6, 0, 10, 0, 1, 2, 0, 0])]));
  t.is(rule.fwmark, undefined);
  t.deepEqual(rule.unknown, [{ type: 10, payload: Uint8Array.of(1, 2) }]);
});

test('every codec: refuses a message cut off anywhere but between attributes', (t) => {
  const files: readonly (readonly [string, MessageCodec<unknown>])[] = [
    ['route-multipath', ROUTE],
    ['rule-fwmark', RULE],
    ['link-bridge', LINK],
    ['address-v4', ADDRESS],
    ['neigh', NEIGH],
  ];
  for (const [file, codec] of files) {
    const bytes = bodyOf(readCapture(`${file}.answer`));
    let refused = 0;
    for (let length = 0; length < bytes.length; length++) {
      try {
        codec.decode(bytes.subarray(0, length));
      } catch (error) {
        t.true(error instanceof CodecError, String(error));
        refused += 1;
      }
    }
    t.true(refused > bytes.length / 4, `${file}: ${refused} of ${bytes.length}`);
  }
});

test('readExtack: reads the text behind an echoed request', (t) => {
  const bytes = readCapture('error-gateway.answer');
  t.deepEqual(readExtack(viewOf(bytes), 0, bytes.length, undefined), { message: 'Nexthop has invalid gateway' });
});

test('readExtack: leaves out attributes that are cut off', (t) => {
  const bytes = readCapture('error-gateway.answer');
  t.is(readExtack(viewOf(bytes.subarray(0, 70)), 0, 70, undefined), undefined);
});

test('QDISC: clsact', golden, 'clsact', QDISC, {
  ifindex: 3,
  handle: 0xffff0000,
  parent: 0xfffffff1,
  kind: 'clsact',
});
test('TRAFFIC_FILTER: filter with an eBPF program', golden, 'filter', TRAFFIC_FILTER, {
  ifindex: 3,
  handle: 1,
  parent: 0xfffffff2,
  protocol: 3,
  priority: 84,
  kind: 'bpf',
});
test('filterProgram: name, number and hash of the program', (t) => {
  t.deepEqual(filterProgram(TRAFFIC_FILTER.decode(bodyOf(readCapture('filter.answer')))), {
    name: 'verdict.o:[tc]',
    id: 213,
    tag: '614b434cd8324ecc',
    isDirectAction: true,
  });
  t.is(filterProgram({ kind: 'u32', options: new Uint8Array() }), undefined);
  t.is(filterProgram({ kind: 'bpf' }), undefined, 'its chain');
});
