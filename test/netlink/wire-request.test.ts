import test from 'ava';
import { ByteWriter } from '../../netlink/byte-writer.ts';
import { encodeRequest } from '../../netlink/encode-request.ts';
import { renderRequest } from '../../netlink/render-request.ts';
import type { Request } from '../../netlink/request.ts';
import { FIB_RULE_INVERT, FR_ACT_GOTO, FR_ACT_UNREACHABLE } from '../../netlink/uapi/fib-rules.ts';
import { IFA_F_NODAD, IFA_F_NOPREFIXROUTE } from '../../netlink/uapi/if-addr.ts';
import { IFLA_INFO_KIND, IFLA_INFO_SLAVE_DATA } from '../../netlink/uapi/if-link.ts';
import { AF_INET6, NLM_F_ACK, NLM_F_ECHO } from '../../netlink/uapi/netlink.ts';
import { RT_SCOPE_LINK, RTN_BLACKHOLE, RTNH_F_ONLINK } from '../../netlink/uapi/rtnetlink.ts';
import { bodyOf, canonical, type Nests, readCapture } from './support/capture.ts';

const HEADER_BYTES = { link: 16, address: 8, route: 12, rule: 12, neigh: 12, qdisc: 20, filter: 20 };
const NESTS: Readonly<Record<string, Nests>> = {
  link: { 18: { skip: 0, nests: { 2: { skip: 0, nests: { 1: { skip: 16, nests: {} } } } } } },
  bridge: { 18: { skip: 0, nests: { 2: { skip: 0, nests: {} } } } },
  port: { 18: { skip: 0, nests: { 5: { skip: 0, nests: {} } } } },
  route: { 8: { skip: 0, nests: {} } },
  filter: { 2: { skip: 0, nests: {} } },
};
/** Interface indices in a fresh namespace: the second end of a pair is made first. */
const V1 = 2;
const V0 = 3;

/** iproute2's bytes are ours, but for the order of attributes, and flags that only steer the answer. */
const golden = test.macro((t, file: string, request: Request, line: string, kind?: string) => {
  const theirs = readCapture(`${file}.request`);
  const writer = new ByteWriter(4096);
  encodeRequest(writer, request, 1, 0);
  const ours = Buffer.from(writer.written());
  const headerBytes = HEADER_BYTES[request.object];
  const nests = NESTS[kind ?? request.object] ?? {};
  const steering = NLM_F_ACK | NLM_F_ECHO;
  t.is(ours.readUInt32LE(0), ours.length);
  t.is(ours.readUInt16LE(4), theirs.readUInt16LE(4));
  t.is(ours.readUInt16LE(6) & ~steering, theirs.readUInt16LE(6) & ~steering);
  t.deepEqual(canonical(bodyOf(ours), headerBytes, nests), canonical(bodyOf(theirs), headerBytes, nests));
  t.is(
    renderRequest(request, (ifindex) => (ifindex === V0 ? 'v0' : ifindex === V1 ? 'v1' : 'lo')),
    line,
  );
});

test(
  'encodeRequest: rule from an address, table above 255',
  golden,
  'rule-add-from',
  { object: 'rule', verb: 'add', spec: { src: '10.0.1.50/32', table: 4007, priority: 1536, protocol: 84 } },
  'ip rule add from 10.0.1.50/32 pref 1536 protocol 84 lookup 4007',
);
test(
  'encodeRequest: rule by mark and mask',
  golden,
  'rule-add-fwmark',
  { object: 'rule', verb: 'add', spec: { fwmark: 0x50000, fwmask: 0xff0000, table: 100, priority: 1537 } },
  'ip rule add from all fwmark 0x50000/0xff0000 pref 1537 lookup 100',
);
test(
  'encodeRequest: IPv6 rule with interfaces and suppress_prefixlength',
  golden,
  'rule-add-v6',
  {
    object: 'rule',
    verb: 'add',
    spec: { dst: 'fd00::/64', iifname: 'lo', oifname: 'v0', table: 254, priority: 7, suppressPrefixlength: 0 },
  },
  'ip -6 rule add to fd00::/64 iif lo oif v0 pref 7 lookup main suppress_prefixlength 0',
);
test(
  'encodeRequest: rule by ports, users and protocol',
  golden,
  'rule-add-ports',
  {
    object: 'rule',
    verb: 'add',
    spec: {
      ipProto: 6,
      dportRange: { start: 80, end: 90 },
      sportRange: { start: 1024, end: 65535 },
      uidRange: { start: 5, end: 9 },
      priority: 8,
      action: FR_ACT_UNREACHABLE,
    },
  },
  'ip rule add from all pref 8 uidrange 5-9 ipproto 6 sport 1024-65535 dport 80-90 unreachable',
);
test(
  'encodeRequest: inverted rule that jumps',
  golden,
  'rule-add-not-goto',
  {
    object: 'rule',
    verb: 'add',
    spec: { dst: '10.0.0.0/8', flags: FIB_RULE_INVERT, action: FR_ACT_GOTO, goto: 1000, priority: 9 },
  },
  'ip rule add not to 10.0.0.0/8 pref 9 goto 1000',
);
test(
  'encodeRequest: rule to delete by priority',
  golden,
  'rule-del',
  { object: 'rule', verb: 'delete', spec: { priority: 1536 } },
  'ip rule del pref 1536',
);
test(
  'encodeRequest: host route in a table above 255',
  golden,
  'route-add-host',
  { object: 'route', verb: 'add', spec: { dst: '10.0.1.50/32', oif: V0, table: 3999, protocol: 84, scope: 253 } },
  'ip route add 10.0.1.50/32 dev v0 table 3999 proto 84 scope link',
);
test(
  'encodeRequest: route that leaves out all it can',
  golden,
  'route-add-device',
  { object: 'route', verb: 'add', spec: { dst: '10.3.0.0/16', oif: V0 } },
  'ip route add 10.3.0.0/16 dev v0',
);
test(
  'encodeRequest: default route, onlink, with source, metric and metrics',
  golden,
  'route-add-onlink',
  {
    object: 'route',
    verb: 'add',
    spec: {
      gateway: '10.7.0.1',
      oif: V0,
      table: 100,
      prefsrc: '10.0.0.9',
      priority: 7,
      flags: RTNH_F_ONLINK,
      metrics: { mtu: 1400, advmss: 1360 },
    },
  },
  'ip route add default via 10.7.0.1 dev v0 table 100 src 10.0.0.9 metric 7 onlink mtu 1400 advmss 1360',
);
test(
  'encodeRequest: blackhole',
  golden,
  'route-add-blackhole',
  { object: 'route', verb: 'add', spec: { dst: '10.66.0.0/16', type: RTN_BLACKHOLE } },
  'ip route add blackhole 10.66.0.0/16',
);
test(
  'encodeRequest: IPv6 route to replace',
  golden,
  'route-replace-v6',
  { object: 'route', verb: 'replace', spec: { dst: 'fd00:1::/64', gateway: 'fe80::1', oif: V0 } },
  'ip -6 route replace fd00:1::/64 via fe80::1 dev v0',
);
test(
  'encodeRequest: IPv4 route by an IPv6 gateway',
  golden,
  'route-add-via-inet6',
  { object: 'route', verb: 'add', spec: { dst: '10.9.0.0/16', via: 'fe80::1', oif: V0 } },
  'ip route add 10.9.0.0/16 via inet6 fe80::1 dev v0',
);
test(
  'encodeRequest: multipath route',
  golden,
  'route-add-multipath',
  {
    object: 'route',
    verb: 'add',
    spec: { dst: '10.8.0.0/16', multipath: [{ gateway: '10.0.0.1', oif: V0, hops: 1 }, { oif: V1 }] },
  },
  'ip route add 10.8.0.0/16 nexthop via 10.0.0.1 dev v0 weight 2 nexthop dev v1 weight 1',
);
test(
  'encodeRequest: route to delete',
  golden,
  'route-del',
  { object: 'route', verb: 'delete', spec: { dst: '10.0.1.50/32', oif: V0, table: 3999 } },
  'ip route del 10.0.1.50/32 dev v0 table 3999',
);
test(
  'encodeRequest: IPv4 address',
  golden,
  'address-add-v4',
  { object: 'address', verb: 'add', spec: { ifindex: V0, address: '10.0.1.50', prefixlen: 32 } },
  'ip address add 10.0.1.50/32 dev v0',
);
test(
  'encodeRequest: address with label, broadcast and scope',
  golden,
  'address-add-label',
  {
    object: 'address',
    verb: 'add',
    spec: {
      ifindex: V0,
      address: '10.0.1.51',
      prefixlen: 24,
      broadcast: '10.0.1.255',
      label: 'v0:a',
      scope: RT_SCOPE_LINK,
    },
  },
  'ip address add 10.0.1.51/24 broadcast 10.0.1.255 dev v0 label v0:a scope link',
);
test(
  'encodeRequest: address with a peer and wide flags',
  golden,
  'address-add-peer',
  {
    object: 'address',
    verb: 'add',
    spec: {
      ifindex: V0,
      local: '10.0.1.1',
      address: '10.0.1.2',
      prefixlen: 32,
      flags: IFA_F_NOPREFIXROUTE,
      priority: 50,
    },
  },
  'ip address add 10.0.1.1 peer 10.0.1.2/32 dev v0 metric 50 noprefixroute',
);
test(
  'encodeRequest: IPv6 address without duplicate detection',
  golden,
  'address-add-v6',
  { object: 'address', verb: 'add', spec: { ifindex: V0, address: 'fd00::50', prefixlen: 128, flags: IFA_F_NODAD } },
  'ip -6 address add fd00::50/128 dev v0 nodad',
);
test(
  'encodeRequest: address to delete',
  golden,
  'address-del',
  { object: 'address', verb: 'delete', spec: { ifindex: V0, address: '10.0.0.9', prefixlen: 24 } },
  'ip address del 10.0.0.9/24 dev v0',
);
test(
  'encodeRequest: permanent neighbour',
  golden,
  'neigh-replace',
  {
    object: 'neigh',
    verb: 'replace',
    spec: { ifindex: V0, dst: '169.254.1.1', lladdr: '02:00:00:00:00:03', state: 128 },
  },
  'ip neigh replace 169.254.1.1 lladdr 02:00:00:00:00:03 dev v0 nud permanent',
);
test(
  'encodeRequest: neighbour to delete',
  golden,
  'neigh-del',
  { object: 'neigh', verb: 'delete', spec: { ifindex: V0, dst: '169.254.1.1' } },
  'ip neigh del 169.254.1.1 dev v0',
);
test(
  'encodeRequest: veth pair with both ends described',
  golden,
  'link-add-veth',
  {
    object: 'link',
    verb: 'add',
    spec: {
      kind: 'veth',
      ifname: 'eni0',
      ifindex: 70,
      address: '02:00:00:00:00:0a',
      mtu: 1400,
      group: 4007,
      txqlen: 500,
      up: true,
      peer: { ifname: 'eth0', ifindex: 71, address: '02:00:00:00:00:0b', mtu: 1400 },
    },
  },
  'ip link add name eni0 index 70 address 02:00:00:00:00:0a mtu 1400 group 4007 txqueuelen 500 up type veth peer name eth0 index 71 address 02:00:00:00:00:0b mtu 1400',
);
test(
  'encodeRequest: bridge with parameters',
  golden,
  'link-add-bridge',
  { object: 'link', verb: 'add', spec: { kind: 'bridge', ifname: 'cbr0', bridge: { forwardDelay: 200, stpState: 0 } } },
  'ip link add name cbr0 type bridge forward_delay 200 stp_state 0',
  'bridge',
);
test(
  'encodeRequest: link to set up',
  golden,
  'link-set-up',
  { object: 'link', verb: 'set', spec: { ifindex: V0, up: true } },
  'ip link set dev v0 up',
);
test(
  'encodeRequest: link with many changes',
  golden,
  'link-set-many',
  {
    object: 'link',
    verb: 'set',
    spec: { ifindex: V0, mtu: 1300, address: '02:00:00:00:00:0c', group: 9, ifalias: 'tke/x', txqlen: 7 },
  },
  'ip link set dev v0 address 02:00:00:00:00:0c mtu 1300 group 9 txqueuelen 7 alias tke/x',
);
test(
  'encodeRequest: link to take out of its bridge',
  golden,
  'link-set-nomaster',
  { object: 'link', verb: 'set', spec: { ifindex: V0, master: 0 } },
  'ip link set dev v0 nomaster',
);
test(
  'encodeRequest: link that leaves promiscuous mode',
  golden,
  'link-set-promisc-off',
  { object: 'link', verb: 'set', spec: { ifindex: V0, promisc: false } },
  'ip link set dev v0 promisc off',
);
test('encodeRequest: a port of a bridge has the data of iproute2, and no kind for which a kernel would look for a module', (t) => {
  const request: Request = { object: 'link', verb: 'set', spec: { ifindex: V0, bridgePort: { mode: 1 } } };
  const writer = new ByteWriter(4096);
  encodeRequest(writer, request, 1, 0);
  const infoOf = (message: Buffer) => {
    const [header, [, info]] = canonical(bodyOf(message), HEADER_BYTES.link, NESTS['port'] ?? {}) as never as [
      string,
      [number, readonly [string, ...(readonly [number, unknown])[]]],
    ];
    const [, ...attributes] = info;
    return { header, attributes: new Map(attributes) };
  };
  const ours = infoOf(Buffer.from(writer.written()));
  const theirs = infoOf(readCapture('link-set-hairpin.request'));
  t.is(ours.header, theirs.header);
  t.deepEqual(ours.attributes.get(IFLA_INFO_SLAVE_DATA), theirs.attributes.get(IFLA_INFO_SLAVE_DATA));
  t.false(ours.attributes.has(IFLA_INFO_KIND));
  t.is(
    renderRequest(request, () => 'v0'),
    'ip link set dev v0 type bridge_slave hairpin on',
  );
});
test(
  'encodeRequest: link to rename',
  golden,
  'link-rename',
  { object: 'link', verb: 'set', spec: { ifindex: V0, ifname: 'eth7' } },
  'ip link set dev v0 name eth7',
);
test(
  'encodeRequest: link to delete',
  golden,
  'link-del',
  { object: 'link', verb: 'delete', spec: { ifindex: V0 } },
  'ip link del dev v0',
);

test('encodeRequest: writes the same bytes whatever the order of the fields', (t) => {
  const bytes = (spec: Parameters<typeof encode>[0]) => Buffer.from(encode(spec)).toString('hex');
  t.is(
    bytes({ family: AF_INET6, dst: 'fd00::1/128', oif: 7, table: 4007, priority: 1 }),
    bytes({ priority: 1, table: 4007, oif: 7, dst: 'fd00::1/128', family: AF_INET6 }),
  );
});

function encode(spec: (Request & { object: 'route' })['spec']): Uint8Array {
  const writer = new ByteWriter(4096);
  encodeRequest(writer, { object: 'route', verb: 'add', spec }, 1, 0);
  return writer.written().slice();
}

test(
  'encodeRequest: clsact discipline',
  golden,
  'clsact-add',
  { object: 'qdisc', verb: 'add', spec: { ifindex: V0, kind: 'clsact' } },
  'tc qdisc add dev v0 clsact',
);
test(
  'encodeRequest: clsact discipline that goes',
  golden,
  'clsact-del',
  { object: 'qdisc', verb: 'delete', spec: { ifindex: V0, kind: 'clsact' } },
  'tc qdisc del dev v0 clsact',
);

const FILTER = { ifindex: V0, direction: 'ingress', priority: 84, handle: 1 } as const;

test(
  'encodeRequest: filter with an eBPF program',
  golden,
  'filter-replace',
  // The descriptor that tc had.
  { object: 'filter', verb: 'replace', spec: { ...FILTER, program: { fd: 6, name: 'verdict.o:[tc]' } } },
  'tc filter replace dev v0 ingress pref 84 protocol all handle 1 bpf direct-action pinned verdict.o:[tc]',
);
test(
  'encodeRequest: filter that goes',
  golden,
  'filter-del',
  { object: 'filter', verb: 'delete', spec: FILTER },
  'tc filter del dev v0 ingress pref 84 protocol all handle 1 bpf',
);
