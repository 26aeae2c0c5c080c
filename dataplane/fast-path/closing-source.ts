import type { SourceLine } from '../../bpf/assemble.ts';
import type { Register } from '../../bpf/instruction.ts';
import { alu, call, exit, jump, jumpIf, label, load, loadMap, move, networkOrder, store } from '../../bpf/source.ts';
import { IPPROTO_TCP } from '../../netlink/uapi/in.ts';
import { FAST_PATH_MARK } from '../numbers.ts';
import { FLOW_KEY, FLOW_VALUE } from './flow-layout.ts';
import { IPV4, IPV6, SKB, TCP, TCP_FLAGS } from './flow-source.ts';

/** The versions of IP, as labels have them. */
type Version = 'v4' | 'v6';

/** Of each version: offsets in the frame, the map, the key. */
const OF = {
  v4: { ports: IPV4.ports, length: IPV4.length, header: 20, map: 'flows4', key: FLOW_KEY[4], hop: IPV4.ttl },
  v6: { ports: IPV6.ports, length: IPV6.length, header: 0, map: 'flows6', key: FLOW_KEY[6], hop: IPV6.nextHeader },
} as const;

/** Places on the stack, below the longer one of the two keys and what the fast program has below it. */
const REVERSE = -(2 * FLOW_KEY[6].bytes + 8);
const FLAGS = REVERSE - 8;
/** What is changed of the packet, before and after: two bytes with the flags, two with the hop limit, the mark. */
const CHANGED = FLAGS - 16;
const AT = { flags: CHANGED, fin: CHANGED + 2, hop: CHANGED + 4, noHop: CHANGED + 6, mark: CHANGED + 8 } as const;

const BPF_F_INGRESS = 1;
/** skb_store_bytes() then has a sum that the network card made of the whole packet follow the change. */
const BPF_F_RECOMPUTE_CSUM = 1;
/** Of the two bytes with length and flags of a TCP header, as a little-endian machine reads them. */
const LENGTH_BYTE = 0x00ff;
const FIN_ACK = 0x1100;

/**
 * Lines that keep of a TCP packet what shows later that a RST belongs to the flow: the number behind its last byte, and the
 * number that it acknowledges. `r8`: frame. They use `r1` and `r2`.
 */
export function rememberNumbers(version: Version, value: Register, offset: number): readonly SourceLine[] {
  const { ports, length, header } = OF[version];
  return [
    load(16, 'r1', 'r8', length),
    networkOrder(16, 'r1'),
    load(8, 'r2', 'r8', ports + TCP.offset),
    // Its upper four bits count words of 4 bytes.
    alu('rsh', 'r2', 4),
    alu('lsh', 'r2', 2),
    alu('sub', 'r1', 'r2'),
    ...(header === 0 ? [] : [alu('sub', 'r1', header)]),
    load(32, 'r2', 'r8', ports + TCP.sequence),
    networkOrder(32, 'r2'),
    alu('add', 'r1', 'r2'),
    store(32, value, offset + FLOW_VALUE.end, 'r1'),
    load(32, 'r1', 'r8', ports + TCP.acknowledged),
    store(32, value, offset + FLOW_VALUE.acknowledged, 'r1'),
  ];
}

/**
 * Lines for a packet of a known flow with FIN, SYN or RST, at the label `<version>-closing`: the flow ends, with that of the other
 * direction. `r1`: flags, `r6`: argument, `r7`: flow, `r8`: frame; the key is on the stack.
 *
 * FIN and SYN then take the kernel's way. Of a RST connection tracking does not see that it ends the connection, since it knows
 * neither number that the fast path saw: it keeps the connection for established (tcp_packet() in nf_conntrack_proto_tcp.c). In
 * any other state it takes a RST at its word. So a copy of the packet goes in front, with FIN in the place of RST and without a
 * hop left, which is for connection tracking alone: our chain in the hook prerouting drops it. A RST with other numbers leaves
 * the flow alone, as TCP and connection tracking do.
 *
 * The copy and the RST behind it are received once more. A SYN that comes after them must not overtake them, and goes the same
 * way: for that the flow of a RST stays, without an interface to leave by.
 */
export function closing(version: Version): readonly SourceLine[] {
  const { ports, map, key } = OF[version];
  const own = -key.bytes;
  const forget = (at: number): readonly SourceLine[] => [
    loadMap('r1', map),
    move('r2', 'r10'),
    alu('add', 'r2', at),
    call('map_delete_elem'),
  ];
  return [
    label(`${version}-closing`),
    alu('and', 'r1', TCP_FLAGS.fin | TCP_FLAGS.syn | TCP_FLAGS.rst),
    load(32, 'r2', 'r7', FLOW_VALUE.oif),
    jumpIf('r2', '==', 0, `${version}-behind`),
    store(64, 'r10', FLAGS, 'r1'),
    // As in the key: from a link with a greater number nothing is followed, and no link has the number 0.
    jumpIf('r2', '<=', 0xffffff, `${version}-link`),
    move('r2', 0),
    label(`${version}-link`),
    ...reverseKey(version),
    loadMap('r1', map),
    move('r2', 'r10'),
    alu('add', 'r2', REVERSE),
    call('map_lookup_elem'),
    load(64, 'r1', 'r10', FLAGS),
    jumpIf('r1', '==', TCP_FLAGS.rst, `${version}-reset`),
    ...forget(REVERSE),
    ...forget(own),
    jump('out'),
    label(`${version}-reset`),
    load(32, 'r3', 'r8', ports + TCP.sequence),
    jumpIf('r0', '==', 0, `${version}-own`),
    load(32, 'r4', 'r0', FLOW_VALUE.acknowledged),
    jumpIf('r3', '==', 'r4', `${version}-closed`),
    label(`${version}-own`),
    networkOrder(32, 'r3'),
    load(32, 'r4', 'r7', FLOW_VALUE.end),
    jumpIf('r3', '!=', 'r4', 'out'),
    label(`${version}-closed`),
    ...forget(REVERSE),
    store(64, 'r7', FLOW_VALUE.expiry, 0),
    store(32, 'r7', FLOW_VALUE.oif, 0),
    ...tellConntrack(version),
    jump('again'),
    label(`${version}-behind`),
    jumpIf('r1', '!=', TCP_FLAGS.syn, 'out'),
    ...forget(own),
    jump('again'),
  ];
}

/** Lines at the label `again`: the packet is received once more, behind what was received before. */
export function receiveAgain(): readonly SourceLine[] {
  return [label('again'), load(32, 'r1', 'r6', SKB.ifindex), move('r2', BPF_F_INGRESS), call('redirect'), exit()];
}

/** The key of the other direction; `r2`: the interface that this one leaves by. */
function reverseKey(version: Version): readonly SourceLine[] {
  const { key } = OF[version];
  const [from, to] = [-key.bytes, REVERSE];
  const width = version === 'v4' ? 32 : 64;
  const step = width / 8;
  const parts = Array.from({ length: key.addressBytes / step }, (_, at) => at * step);
  return [
    alu('lsh', 'r2', 8),
    alu('or', 'r2', IPPROTO_TCP),
    store(32, 'r10', to + key.iifProto, 'r2'),
    ...parts.flatMap((part) => [
      load(width, 'r3', 'r10', from + key.src + part),
      store(width, 'r10', to + key.dst + part, 'r3'),
      load(width, 'r3', 'r10', from + key.dst + part),
      store(width, 'r10', to + key.src + part, 'r3'),
    ]),
    load(16, 'r3', 'r10', from + key.ports),
    store(16, 'r10', to + key.ports + 2, 'r3'),
    load(16, 'r3', 'r10', from + key.ports + 2),
    store(16, 'r10', to + key.ports, 'r3'),
  ];
}

/** The copy for connection tracking; the packet itself is as before after it. */
function tellConntrack(version: Version): readonly SourceLine[] {
  const { ports, hop } = OF[version];
  // The hop limit is the byte with the lower address of IPv4, and the one with the higher address of IPv6.
  const others = version === 'v4' ? 0xff00 : 0x00ff;
  return [
    load(16, 'r1', 'r8', ports + TCP.offset),
    store(16, 'r10', AT.flags, 'r1'),
    alu('and', 'r1', LENGTH_BYTE),
    alu('or', 'r1', FIN_ACK),
    store(16, 'r10', AT.fin, 'r1'),
    load(16, 'r1', 'r8', hop),
    store(16, 'r10', AT.hop, 'r1'),
    alu('and', 'r1', others),
    store(16, 'r10', AT.noHop, 'r1'),
    load(32, 'r1', 'r6', SKB.mark),
    store(32, 'r10', AT.mark, 'r1'),
    alu('or', 'r1', FAST_PATH_MARK),
    store(32, 'r6', SKB.mark, 'r1'),
    ...replace(version, AT.flags, AT.fin, AT.hop, AT.noHop),
    move('r1', 'r6'),
    load(32, 'r2', 'r6', SKB.ifindex),
    move('r3', BPF_F_INGRESS),
    call('clone_redirect'),
    ...replace(version, AT.fin, AT.flags, AT.noHop, AT.hop),
    load(32, 'r1', 'r10', AT.mark),
    store(32, 'r6', SKB.mark, 'r1'),
  ];
}

/** Writes the flags and the hop limit, with the checksums of TCP and IPv4. */
function replace(version: Version, flags: number, newFlags: number, hop: number, newHop: number): SourceLine[] {
  const { ports, hop: hopAt } = OF[version];
  return [
    ...storeBytes(ports + TCP.offset, newFlags, 0),
    ...replaceSum('l4_csum_replace', ports + TCP.checksum, flags, newFlags),
    ...storeBytes(hopAt, newHop, version === 'v4' ? 0 : BPF_F_RECOMPUTE_CSUM),
    ...(version === 'v4' ? replaceSum('l3_csum_replace', IPV4.checksum, hop, newHop) : []),
  ];
}

function storeBytes(at: number, from: number, flags: number): SourceLine[] {
  return [
    move('r1', 'r6'),
    move('r2', at),
    move('r3', 'r10'),
    alu('add', 'r3', from),
    move('r4', 2),
    move('r5', flags),
    call('skb_store_bytes'),
  ];
}

function replaceSum(helper: 'l3_csum_replace' | 'l4_csum_replace', at: number, from: number, to: number): SourceLine[] {
  return [
    move('r1', 'r6'),
    move('r2', at),
    load(16, 'r3', 'r10', from),
    load(16, 'r4', 'r10', to),
    move('r5', 2),
    call(helper),
  ];
}
