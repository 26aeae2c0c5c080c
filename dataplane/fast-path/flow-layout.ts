import type { MapEntry, MapShape } from '../../bpf/bpf-map.ts';
import { IPPROTO_TCP } from '../../netlink/uapi/in.ts';
import { formatIp } from '../../runtime/ip-text.ts';
import type { Family } from '../ip-prefix.ts';

/** How long a learned flow is followed without a look at the kernel's decision, ns: one packet a second takes the slow path. */
export const FLOW_TTL_NS = 1_000_000_000;

/**
 * Key of a flow: source, destination, both ports in network order, and the index of the interface that it comes in by moved by
 * 8 bits, with the protocol below. The interface is a part: the same addresses from another Pod are another flow.
 */
export const FLOW_KEY = {
  4: { bytes: 16, src: 0, dst: 4, ports: 8, iifProto: 12, addressBytes: 4 },
  6: { bytes: 40, src: 0, dst: 16, ports: 32, iifProto: 36, addressBytes: 16 },
} as const;

/**
 * Value of a flow: until when it is followed (CLOCK_MONOTONIC_COARSE, ns), where it goes, the epoch it was learned in, both
 * MAC addresses of the packet that it was learned from, MTU of the outgoing interface, priority of the packet (SO_PRIORITY),
 * its DSCP as `readDscp` of flow-source.ts reads it. Of TCP the number behind the last byte that the flow sent (as the machine
 * counts), and the number that it acknowledged (in network order).
 *
 * A flow that a RST ended has no outgoing interface.
 */
export const FLOW_VALUE = {
  bytes: 48,
  expiry: 0,
  oif: 8,
  epoch: 12,
  macs: 16,
  mtu: 28,
  priority: 32,
  dscp: 36,
  end: 40,
  acknowledged: 44,
} as const;

/** Flows of IPv4, which most are; all entries are allocated with the map: 8.5 MiB. */
export const FLOWS_4: MapShape = {
  ...{ type: 'lru-hash', name: 'tke_flows4', keyBytes: FLOW_KEY[4].bytes, valueBytes: FLOW_VALUE.bytes },
  maxEntries: 65_536,
};

/** Flows of IPv6: 9.5 MiB. */
export const FLOWS_6: MapShape = { ...FLOWS_4, name: 'tke_flows6', keyBytes: FLOW_KEY[6].bytes };

/** The epoch: a flow of another one is not followed. */
export const EPOCH: MapShape = { type: 'array', name: 'tke_epoch', keyBytes: 4, valueBytes: 4, maxEntries: 1 };

/**
 * Value of the arrivals: the number of the last packet that came in on a CPU and went on the slow way, then places for the keys of such
 * packets, each with the number and the family of its packet.
 */
export const ARRIVALS_VALUE = { slots: 64, slotShift: 6, slotCount: 64, tag: 40 } as const;
/** What came in last, 4 KiB a CPU. */
export const ARRIVALS: MapShape = {
  ...{ type: 'percpu-array', name: 'tke_arrivals', keyBytes: 4, maxEntries: 1 },
  valueBytes: ARRIVALS_VALUE.slots + (ARRIVALS_VALUE.slotCount << ARRIVALS_VALUE.slotShift),
};

/** A learned flow, for people. */
export type Flow = {
  readonly family: Family;
  readonly protocol: 'tcp' | 'udp';
  readonly src: string;
  readonly dst: string;
  readonly sport: number;
  readonly dport: number;
  /** Interface that it comes in by, and the one that it leaves by. */
  readonly iif: number;
  readonly oif: number;
  readonly epoch: number;
  /** CLOCK_MONOTONIC, ns; a flow whose time is over is learned again with its next packet. */
  readonly expiryNs: bigint;
};

/** Reads an entry of one of the two maps. */
export function decodeFlow(family: Family, { key, value }: MapEntry): Flow {
  const at = FLOW_KEY[family];
  const [keys, values] = [viewOf(key), viewOf(value)];
  const iifProto = keys.getUint32(at.iifProto, true);
  return {
    family,
    protocol: (iifProto & 0xff) === IPPROTO_TCP ? 'tcp' : 'udp',
    src: formatIp(key, at.src, at.addressBytes),
    dst: formatIp(key, at.dst, at.addressBytes),
    sport: keys.getUint16(at.ports),
    dport: keys.getUint16(at.ports + 2),
    iif: iifProto >>> 8,
    oif: values.getUint32(FLOW_VALUE.oif, true),
    epoch: values.getUint32(FLOW_VALUE.epoch, true),
    expiryNs: values.getBigUint64(FLOW_VALUE.expiry, true),
  };
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
