import type { SourceLine } from '../../bpf/assemble.ts';
import { alu, call, jump, jumpIf, label, load, move, store } from '../../bpf/source.ts';
import { IPPROTO_TCP, IPPROTO_UDP } from '../../netlink/uapi/in.ts';
import { FLOW_KEY } from './flow-layout.ts';

/** Fields of struct __sk_buff, the argument of both programs. @see uapi/linux/bpf.h */
export const SKB = {
  ...{ len: 0, pktType: 4, mark: 8, vlanPresent: 20, priority: 32, ingressIfindex: 36, ifindex: 40, tcIndex: 44 },
  ...{ data: 76, dataEnd: 80, gsoSize: 176 },
} as const;

/** Bytes of the Ethernet header. */
export const ETH_HLEN = 14;
const ETHERTYPE = 12;
/** As a 16-bit load of a little-endian machine reads them. */
const ETH_P_IP = 0x0008;
const ETH_P_IPV6 = 0xdd86;

/** Offsets of IPv4 without options, from the start of the frame. */
export const IPV4 = {
  version: 14,
  service: 15,
  length: 16,
  fragment: 20,
  ttl: 22,
  protocol: 23,
  checksum: 24,
  src: 26,
  dst: 30,
  ports: 34,
} as const;
/** Offsets of IPv6, from the start of the frame. */
export const IPV6 = { version: 14, length: 18, nextHeader: 20, hopLimit: 21, src: 22, dst: 38, ports: 54 } as const;
/** From the ports on, of a TCP header: sequence number, acknowledged number, length in the upper half of a byte, flags, checksum. */
export const TCP = { sequence: 4, acknowledged: 8, offset: 12, flags: 13, checksum: 16 } as const;
/** Flags of TCP by which connection tracking follows a connection. */
export const TCP_FLAGS = { fin: 0x01, syn: 0x02, rst: 0x04 } as const;
const TCP_STATE_FLAGS = TCP_FLAGS.fin | TCP_FLAGS.syn | TCP_FLAGS.rst;
/** Version 4 and a header of five words. */
const IPV4_PLAIN = 0x45;
/** More fragments and the fragment offset, as a little-endian machine reads them. */
const FRAGMENT_BITS = 0xff3f;

/** Bytes that have to be in the linear part: up to the TCP flags. A datagram of less than 6 bytes is shorter and stays slow. */
const IPV4_BYTES = IPV4.ports + TCP.flags + 1;
const IPV6_BYTES = IPV6.ports + TCP.flags + 1;

/**
 * Lines that read one packet: `r6` is the argument, `r8` the frame, and the key is written to the stack. They go to `out` for
 * all that is not a plain packet of a TCP or UDP flow, and to `found4` or `found6` with `r2` at the key.
 * @param iif Field of the argument with the interface that the packet came in by
 * @param mayPull True where a driver may have left the headers outside of the linear part
 */
export function readPacket(iif: number, mayPull: boolean): readonly SourceLine[] {
  return [
    move('r6', 'r1'),
    // A tag that the network card took out is not in the frame: this is another network.
    load(32, 'r1', 'r6', SKB.vlanPresent),
    jumpIf('r1', '!=', 0, 'out'),
    // An IPv6 packet is longer.
    ...frame('start', IPV4_BYTES, mayPull),
    load(16, 'r5', 'r8', ETHERTYPE),
    jumpIf('r5', '==', ETH_P_IPV6, 'ipv6'),
    jumpIf('r5', '!=', ETH_P_IP, 'out'),
    ...readIpv4(iif),
    label('ipv6'),
    ...readIpv6(iif, mayPull),
  ];
}

/** Lines that read the DSCP into `r1`: the six bits at their places in the frame, as a little-endian machine reads them. */
export function readDscp(name: 'v4' | 'v6'): readonly SourceLine[] {
  return name === 'v4'
    ? [load(8, 'r1', 'r8', IPV4.service), alu('and', 'r1', 0xfc)]
    : [load(16, 'r1', 'r8', IPV6.version), alu('and', 'r1', 0xc00f)];
}

function readIpv4(iif: number): readonly SourceLine[] {
  const { bytes, ...key } = FLOW_KEY[4];
  return [
    // Options are for the kernel: a router may have to change them.
    load(8, 'r5', 'r8', IPV4.version),
    jumpIf('r5', '!=', IPV4_PLAIN, 'out'),
    // A fragment has no ports, apart from the first, and connection tracking puts them together.
    load(16, 'r5', 'r8', IPV4.fragment),
    jumpIf('r5', 'set', FRAGMENT_BITS, 'out'),
    // Here it ends: the kernel answers with time exceeded.
    load(8, 'r5', 'r8', IPV4.ttl),
    jumpIf('r5', '<=', 1, 'out'),
    load(32, 'r5', 'r8', IPV4.src),
    store(32, 'r10', key.src - bytes, 'r5'),
    load(32, 'r5', 'r8', IPV4.dst),
    store(32, 'r10', key.dst - bytes, 'r5'),
    load(8, 'r1', 'r8', IPV4.protocol),
    ...readTransport('udp4', IPV4.ports, iif, bytes, key),
    jump('found4'),
  ];
}

function readIpv6(iif: number, mayPull: boolean): readonly SourceLine[] {
  const { bytes, ...key } = FLOW_KEY[6];
  return [
    ...frame('ipv6', IPV6_BYTES, mayPull),
    load(8, 'r5', 'r8', IPV6.hopLimit),
    jumpIf('r5', '<=', 1, 'out'),
    ...[0, 8].flatMap((half) => [
      load(64, 'r5', 'r8', IPV6.src + half),
      store(64, 'r10', key.src + half - bytes, 'r5'),
      load(64, 'r5', 'r8', IPV6.dst + half),
      store(64, 'r10', key.dst + half - bytes, 'r5'),
    ]),
    // An extension header, as that of a fragment, is neither TCP nor UDP.
    load(8, 'r1', 'r8', IPV6.nextHeader),
    ...readTransport('udp6', IPV6.ports, iif, bytes, key),
    jump('found6'),
  ];
}

/** Lines that go to `target` for a TCP packet with FIN, SYN or RST, with the flags in `r1`. */
export function closes(version: 'v4' | 'v6', target: string): readonly SourceLine[] {
  const { ports } = version === 'v4' ? IPV4 : IPV6;
  return [load(8, 'r1', 'r8', ports + TCP.flags), jumpIf('r1', 'set', TCP_STATE_FLAGS, target)];
}

/** Reads what comes behind the addresses; `r1` is the protocol. */
function readTransport(
  udp: string,
  ports: number,
  iif: number,
  bytes: number,
  key: { readonly ports: number; readonly iifProto: number },
): readonly SourceLine[] {
  return [
    jumpIf('r1', '==', IPPROTO_UDP, udp),
    jumpIf('r1', '!=', IPPROTO_TCP, 'out'),
    label(udp),
    load(32, 'r5', 'r8', ports),
    store(32, 'r10', key.ports - bytes, 'r5'),
    load(32, 'r5', 'r6', iif),
    // A greater number, which a link may be created with, has no place beside the protocol: another link has the rest of it.
    jumpIf('r5', '>', 0xffffff, 'out'),
    alu('lsh', 'r5', 8),
    alu('or', 'r5', 'r1'),
    store(32, 'r10', key.iifProto - bytes, 'r5'),
    move('r2', 'r10'),
    alu('add', 'r2', -bytes),
  ];
}

/** Sets `r8` to the frame, with so many bytes that may be read. The verifier demands the comparison. */
function frame(name: string, bytes: number, mayPull: boolean): readonly SourceLine[] {
  const compare = (target: string) => [
    load(32, 'r8', 'r6', SKB.data),
    load(32, 'r3', 'r6', SKB.dataEnd),
    move('r4', 'r8'),
    alu('add', 'r4', bytes),
    jumpIf('r4', target === 'out' ? '>' : '<=', 'r3', target),
  ];
  if (!mayPull) return compare('out');
  const ready = `${name}-ready`;
  return [
    ...compare(ready),
    move('r1', 'r6'),
    move('r2', bytes),
    call('skb_pull_data'),
    jumpIf('r0', '!=', 0, 'out'),
    ...compare('out'),
    label(ready),
  ];
}
