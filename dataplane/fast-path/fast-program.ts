import type { SourceLine } from '../../bpf/assemble.ts';
import { alu, call, exit, jump, jumpIf, label, load, loadMap, loadValueOf, move, store } from '../../bpf/source.ts';
import { TC_ACT_UNSPEC } from '../../bpf/uapi/bpf.ts';
import { IPPROTO_UDP } from '../../netlink/uapi/in.ts';
import { rememberArrival } from './arrival-source.ts';
import { closing, receiveAgain, rememberNumbers } from './closing-source.ts';
import { FLOW_KEY, FLOW_VALUE } from './flow-layout.ts';
import { closes, ETH_HLEN, IPV4, IPV6, readDscp, readPacket, SKB, TCP } from './flow-source.ts';

/** Bytes of headers without options. */
const IPV4_HEADER = 20;
const IPV6_HEADER = 40;
const UDP_HEADER = 8;
/** The protocol on the stack, below the longer one of the two keys. */
const PROTOCOL = -(FLOW_KEY[6].bytes + 8);

/** Minus 0x0100 as a little-endian machine adds it up in one's complement. */
const HOP_LIMIT_DIFFERENCE = 0xfffffeff;

/**
 * The program at the ingress of ENIs and Pods' links: a packet of a learned flow leaves at once by the interface that the
 * kernel chose for the packet before it. All else goes on as without it. `r6`: argument, `r7`: flow, `r8`: frame, `r9`: length
 * of the IP header, for what is cut into segments later.
 */
export const FAST_PROGRAM: readonly SourceLine[] = [
  // To another station's address, to all or to a group: a router does not forward it.
  load(32, 'r2', 'r1', SKB.pktType),
  jumpIf('r2', '!=', 0, 'out'),
  ...readPacket(SKB.ifindex, true),
  label('found4'),
  loadMap('r1', 'flows4'),
  call('map_lookup_elem'),
  jumpIf('r0', '==', 0, 'v4-slow'),
  move('r7', 'r0'),
  load(8, 'r3', 'r8', IPV4.protocol),
  ...follow('v4'),
  move('r9', IPV4_HEADER),
  ...checks('v4'),
  ...decreaseTtl(),
  jump('forward'),
  label('found6'),
  loadMap('r1', 'flows6'),
  call('map_lookup_elem'),
  jumpIf('r0', '==', 0, 'v6-slow'),
  move('r7', 'r0'),
  load(8, 'r3', 'r8', IPV6.nextHeader),
  ...follow('v6'),
  move('r9', IPV6_HEADER),
  ...checks('v6'),
  ...decreaseHopLimit(),
  label('forward'),
  // Both MAC addresses of the packet that the flow was learned from.
  load(64, 'r1', 'r7', FLOW_VALUE.macs),
  store(64, 'r8', 0, 'r1'),
  load(32, 'r1', 'r7', FLOW_VALUE.macs + 8),
  store(32, 'r8', 8, 'r1'),
  // Forwarding derives it from the type of service; queueing disciplines sort by it.
  load(32, 'r1', 'r7', FLOW_VALUE.priority),
  store(32, 'r6', SKB.priority, 'r1'),
  load(32, 'r1', 'r7', FLOW_VALUE.oif),
  move('r2', 0),
  call('redirect'),
  exit(),
  ...rememberArrival('v4', PROTOCOL),
  ...rememberArrival('v6', PROTOCOL),
  ...closing('v4'),
  ...closing('v6'),
  ...receiveAgain(),
  label('out'),
  move('r0', TC_ACT_UNSPEC),
  exit(),
];

/** Lines that leave for the end of a connection, and else keep the numbers of a TCP packet, fast or slow. `r3`: protocol. */
function follow(version: 'v4' | 'v6'): readonly SourceLine[] {
  return [
    jumpIf('r3', '==', IPPROTO_UDP, `${version}-known`),
    ...closes(version, `${version}-closing`),
    ...rememberNumbers(version, 'r7', 0),
    label(`${version}-known`),
  ];
}

/** Lines that go to `<version>-slow` unless the flow may still be followed and the packet fits. `r3`: protocol; `r9`: length of the IP header. */
function checks(name: 'v4' | 'v6'): readonly SourceLine[] {
  return [
    // Something changed since it was learned: the kernel decides again.
    loadValueOf('r1', 'epoch'),
    load(32, 'r1', 'r1', 0),
    load(32, 'r2', 'r7', FLOW_VALUE.epoch),
    jumpIf('r1', '!=', 'r2', `${name}-slow`),
    // Rules rewrite it on the way, or route by it: then no packet comes in as the one that was learned from went out.
    ...readDscp(name),
    load(32, 'r2', 'r7', FLOW_VALUE.dscp),
    jumpIf('r1', '!=', 'r2', `${name}-slow`),
    // Its time is over: this packet is seen by connection tracking and by everybody's rules, and renews the flow.
    store(64, 'r10', PROTOCOL, 'r3'),
    call('ktime_get_coarse_ns'),
    load(64, 'r1', 'r7', FLOW_VALUE.expiry),
    jumpIf('r0', '>', 'r1', `${name}-slow`),
    ...fits(name),
  ];
}

/** Lines that go to `<version>-slow` for a packet that is too large for the outgoing interface: the kernel fragments or refuses it. */
function fits(name: 'v4' | 'v6'): readonly SourceLine[] {
  const ports = name === 'v4' ? IPV4.ports : IPV6.ports;
  return [
    load(32, 'r1', 'r6', SKB.len),
    alu('sub', 'r1', ETH_HLEN),
    load(32, 'r2', 'r7', FLOW_VALUE.mtu),
    jumpIf('r1', '<=', 'r2', `${name}-fits`),
    // Segments that were joined, or are not cut yet: each of them has to fit.
    load(32, 'r1', 'r6', SKB.gsoSize),
    jumpIf('r1', '==', 0, `${name}-slow`),
    alu('add', 'r1', 'r9'),
    load(64, 'r3', 'r10', PROTOCOL),
    jumpIf('r3', '==', IPPROTO_UDP, `${name}-udp`),
    load(8, 'r3', 'r8', ports + TCP.offset),
    // Its upper four bits count words of 4 bytes.
    alu('rsh', 'r3', 4),
    alu('lsh', 'r3', 2),
    alu('add', 'r1', 'r3'),
    jump(`${name}-segment`),
    label(`${name}-udp`),
    alu('add', 'r1', UDP_HEADER),
    label(`${name}-segment`),
    jumpIf('r1', '>', 'r2', `${name}-slow`),
    label(`${name}-fits`),
  ];
}

/** As ip_decrease_ttl() of the kernel: one less in the upper byte of a word makes the checksum greater by the same. */
function decreaseTtl(): readonly SourceLine[] {
  return [
    load(8, 'r1', 'r8', IPV4.ttl),
    alu('sub', 'r1', 1),
    store(8, 'r8', IPV4.ttl, 'r1'),
    load(16, 'r1', 'r8', IPV4.checksum),
    alu('add', 'r1', 1),
    jumpIf('r1', '<', 0xffff, 'carried'),
    alu('add', 'r1', 1),
    label('carried'),
    store(16, 'r8', IPV4.checksum, 'r1'),
  ];
}

/** IPv6 has no checksum. A sum that the network card made of the whole packet has to follow the change. */
function decreaseHopLimit(): readonly SourceLine[] {
  return [
    load(8, 'r1', 'r8', IPV6.hopLimit),
    alu('sub', 'r1', 1),
    store(8, 'r8', IPV6.hopLimit, 'r1'),
    move('r1', 'r6'),
    move('r2', HOP_LIMIT_DIFFERENCE),
    call('csum_update'),
  ];
}
