import { FAST_PATH_MARK } from '../../../dataplane/numbers.ts';
import { ACK, type FrameSpec, frame, ipv4Fault, TCP } from './frame.ts';
import { NEXT, type ProgramBench, TC_ACT_REDIRECT, TC_ACT_UNSPEC, V4, V6 } from './program-bench.ts';
import type { TestSkb } from './run-program.ts';

/** A packet to learn from, then one that arrives. */
type PacketCase = {
  readonly what: string;
  readonly learn: FrameSpec;
  readonly learnSkb?: TestSkb;
  /** How the packet to learn from came in, where rules rewrote it; a number: as it left, but another packet took its place. */
  readonly cameInAs?: FrameSpec | number;
  /** What happens in between. */
  readonly between?: 'flows are forgotten' | 'a second';
  /** Default: as the one to learn from. */
  readonly arrive?: FrameSpec;
  readonly skb?: TestSkb;
  /** Where the packet is of the link `twin` of the bench. */
  readonly isTwin?: 'learn' | 'arrive';
};

const TCP4: FrameSpec = { ...V4, protocol: TCP };
const TCP6: FrameSpec = { ...V6, protocol: TCP };
const ICMP = 1;
const IPV6_FRAGMENT = 44;
const ARP = 0x0806;

/** Flags of TCP that connection tracking has to see. */
const STATE_FLAGS = { FIN: 0x11, SYN: 0x02, RST: 0x04 } as const;

/** Packets that leave at once: of a learned flow, and what does not matter to it. */
const FOLLOWED: readonly PacketCase[] = [
  ...[V4, V6, TCP4, TCP6].map((learn) => ({ what: 'as learned', learn, learnSkb: { priority: 6 } })),
  ...[TCP4, TCP6].map((learn) => ({ what: 'PSH and URG', learn, arrive: { ...learn, tcpFlags: ACK | 0x28 } })),
  ...[V4, V6].map((plain) => ({ what: 'UDP with bytes where TCP has its flags', learn: { ...plain, fill: 0xff } })),
  ...[V4, V6].map((learn) => ({ what: 'a datagram of 6 bytes', learn, arrive: { ...learn, payloadBytes: 6 } })),
  { what: 'learned with all bits of the mark', learn: V4, learnSkb: { mark: 0xffffffff } },
  { what: 'may not be fragmented', learn: V4, arrive: { ...V4, fragment: 0x4000 } },
  { what: 'a bit of ECN', learn: V4, arrive: { ...V4, service: 0x01 } },
  { what: 'both bits of ECN, IPv6', learn: V6, arrive: { ...V6, service: 0x03 } },
  { what: 'exactly the MTU', learn: V4, arrive: { ...V4, payloadBytes: 1472 } },
  { what: 'exactly the MTU, IPv6', learn: V6, arrive: { ...V6, payloadBytes: 1452 } },
  ...segments('segments that fit exactly', 0),
  ...[2, 3, 64, 65, 255].flatMap((ttl) =>
    [V4, V6].map((learn) => ({ what: `TTL ${ttl}`, learn, arrive: { ...learn, ttl } })),
  ),
  // Sums that carry: with one of these a header before has the checksum 0xfffe or 0xffff.
  ...Array.from({ length: 256 }, (_, last) => ({ ...V4, dst: `255.254.${255 - last}.${last}` })).map((learn) => ({
    what: 'a checksum that may carry',
    learn,
  })),
];

/** Packets that take the slow way: they differ from the flow in one thing, or nothing was to be learned. */
const LEFT: readonly PacketCase[] = [
  { what: 'another source', learn: V4, arrive: { ...V4, src: '10.0.5.8' } },
  { what: 'another destination', learn: V4, arrive: { ...V4, dst: '203.0.113.11' } },
  { what: 'another protocol', learn: V4, arrive: { ...TCP4, dport: 53 } },
  { what: 'another source, IPv6', learn: V6, arrive: { ...V6, src: '2001:db8::8' } },
  { what: 'the last half of the destination, IPv6', learn: V6, arrive: { ...V6, dst: '2001:db8:ff::11' } },
  { what: 'another DSCP', learn: V4, arrive: { ...V4, service: 0x28 } },
  { what: 'another DSCP, upper bits, IPv6', learn: V6, arrive: { ...V6, service: 0x80 } },
  { what: 'another DSCP, lower bits, IPv6', learn: V6, arrive: { ...V6, service: 0x04 } },
  { what: 'options', learn: V4, arrive: { ...V4, version: 0x46 } },
  { what: 'the first fragment', learn: V4, arrive: { ...V4, fragment: 0x2000 } },
  { what: 'a later fragment', learn: V4, arrive: { ...V4, fragment: 0x0010 } },
  { what: 'a fragment header, IPv6', learn: V6, arrive: { ...V6, protocol: IPV6_FRAGMENT } },
  { what: 'longer than the MTU', learn: V4, arrive: { ...V4, payloadBytes: 1473 } },
  { what: 'longer than the MTU, IPv6', learn: V6, arrive: { ...V6, payloadBytes: 1453 } },
  ...segments('segments of which each is longer than the MTU', 1),
  ...[V4, V6, TCP4, TCP6].flatMap((learn): readonly PacketCase[] => [
    { what: 'learned from another packet of the same place', learn, cameInAs: 64 },
    { what: 'learned with a rewritten source port', learn, cameInAs: { ...learn, sport: 1001 } },
    { what: 'learned with a rewritten destination port', learn, cameInAs: { ...learn, dport: 54 } },
    { what: 'forgotten', learn, between: 'flows are forgotten' },
    { what: 'learned before a second', learn, between: 'a second' },
    { what: 'another source port', learn, arrive: { ...learn, sport: 1001 } },
    { what: 'another destination port', learn, arrive: { ...learn, dport: 54 } },
    { what: 'another link', learn, arrive: { ...learn, to: '00:00:00:00:00:00' }, skb: { ifindex: 1 } },
    { what: 'a link of the same number in 24 bits', learn, isTwin: 'arrive' },
    { what: 'learned from a link of the same number in 24 bits', learn, isTwin: 'learn' },
    { what: 'to another station', learn, arrive: { ...learn, to: '02:00:00:00:00:77' } },
    { what: 'to all stations', learn, arrive: { ...learn, to: 'ff:ff:ff:ff:ff:ff' } },
    { what: 'to a group', learn, arrive: { ...learn, to: '01:00:5e:00:00:01' } },
    { what: 'a hop limit that ends here', learn, arrive: { ...learn, ttl: 1 } },
    { what: 'a hop limit of 0', learn, arrive: { ...learn, ttl: 0 } },
    { what: 'another EtherType', learn, arrive: { ...learn, etherType: ARP } },
    { what: 'ICMP', learn, arrive: { ...learn, protocol: ICMP } },
    { what: 'a datagram of 5 bytes', learn, arrive: { ...learn, protocol: 17, payloadBytes: 5 } },
    { what: 'too short for ports', learn, arrive: { ...learn, protocol: 17, payloadBytes: 0 } },
    { what: 'without the mark', learn, learnSkb: { mark: 0xff80 & ~FAST_PATH_MARK } },
    { what: 'sent by the node itself', learn, learnSkb: { ingressIfindex: 0 } },
    ...learnedFrom('a hop limit that ends', { ...learn, ttl: 1 }, learn),
    ...learnedFrom('another EtherType', { ...learn, etherType: ARP }, learn),
    ...learnedFrom('ICMP', { ...learn, protocol: ICMP }, learn),
  ]),
  { what: 'learned with a rewritten source', learn: V4, cameInAs: { ...V4, src: '10.0.5.8' } },
  { what: 'learned with a rewritten destination', learn: V4, cameInAs: { ...V4, dst: '203.0.113.11' } },
  ...['2001:db9::9', '2001:db8::8'].map((src) => ({
    ...{ what: `learned with the source rewritten, ${src}`, learn: V6, cameInAs: { ...V6, src } },
  })),
  ...['2001:db8:fe::10', '2001:db8:ff::11'].map((dst) => ({
    ...{ what: `learned with the destination rewritten, ${dst}`, learn: V6, cameInAs: { ...V6, dst } },
  })),
  ...learnedFrom('options', { ...V4, version: 0x46 }, V4),
  ...learnedFrom('a fragment', { ...V4, fragment: 0x2000 }, V4),
  ...[TCP4, TCP6].flatMap((tcp) =>
    Object.entries(STATE_FLAGS).flatMap(([what, tcpFlags]): readonly PacketCase[] => [
      { what, learn: tcp, arrive: { ...tcp, tcpFlags } },
      { what: `learned from ${what}`, learn: { ...tcp, tcpFlags }, arrive: tcp },
    ]),
  ),
];

/**
 * Runs the table against the two programs of a bench and returns what they did wrong, a line each. The links have an MTU of
 * 1500.
 */
export function packetFaults(bench: ProgramBench): readonly string[] {
  return [
    ...FOLLOWED.flatMap((each) => faultsOf(bench, each, true)),
    ...LEFT.flatMap((each) => faultsOf(bench, each, false)),
  ];
}

function faultsOf(bench: ProgramBench, each: PacketCase, isFollowed: boolean): readonly string[] {
  bench.programs.forgetFlows();
  const from = each.isTwin === 'learn' ? { ingressIfindex: bench.twin } : {};
  const { cameInAs = 0 } = each;
  const arrival = { packet: frame(typeof cameInAs === 'number' ? each.learn : cameInAs) };
  const learned = bench.learn(
    { ...each.learn, ttl: each.learn.ttl ?? 63 },
    { ...from, ...each.learnSkb },
    typeof cameInAs === 'number' ? { ...arrival, number: cameInAs } : arrival,
  );
  if (each.between === 'flows are forgotten') bench.programs.forgetFlows();
  if (each.between === 'a second') bench.age();
  const spec = each.arrive ?? each.learn;
  const { action, packet, priority } = bench.arrive(
    spec,
    each.isTwin === 'arrive' ? { ifindex: bench.twin } : each.skb,
  );
  const wanted = frame(isFollowed ? { ...spec, ...NEXT, ttl: (spec.ttl ?? 64) - 1 } : spec);
  // Of a packet that goes on, the bench has chosen the address of its link.
  const start = isFollowed ? 0 : 14;
  const faults = [
    learned.action === TC_ACT_UNSPEC ? '' : `learn answers ${learned.action}`,
    action === (isFollowed ? TC_ACT_REDIRECT : TC_ACT_UNSPEC) ? '' : `fast answers ${action}`,
    packet.subarray(start).equals(wanted.subarray(start)) ? '' : 'the packet is another one',
    isFollowed && priority !== (each.learnSkb?.priority ?? 0) ? `priority ${priority}` : '',
    isFollowed && spec.src.includes('.') && ipv4Fault(packet) !== 0 ? 'a wrong checksum' : '',
  ];
  return faults.filter((fault) => fault !== '').map((fault) => `${each.what}, ${spec.src}: ${fault}`);
}

/** Nothing is learned from a packet that is not plain, neither for the next one like it nor for a plain one. */
function learnedFrom(what: string, learn: FrameSpec, plain: FrameSpec): readonly PacketCase[] {
  return [
    { what: `learned from ${what}`, learn, arrive: plain },
    { what: `learned from ${what}, the next one`, learn },
  ];
}

/** Packets of several segments, each of them so many bytes over what fits. */
function segments(what: string, over: number): readonly PacketCase[] {
  const payloadBytes = 3000;
  return [
    { what, learn: V4, arrive: { ...V4, payloadBytes }, skb: { gsoSize: 1472 + over } },
    { what, learn: V6, arrive: { ...V6, payloadBytes }, skb: { gsoSize: 1452 + over } },
    { what, learn: TCP4, arrive: { ...TCP4, payloadBytes }, skb: { gsoSize: 1460 + over } },
    { what, learn: TCP6, arrive: { ...TCP6, payloadBytes }, skb: { gsoSize: 1440 + over } },
    { what, learn: TCP4, arrive: { ...TCP4, tcpWords: 8, payloadBytes }, skb: { gsoSize: 1448 + over } },
  ];
}
