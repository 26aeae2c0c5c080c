// Bytes of what the kernel lists of filters and disciplines.

import type { TrafficFilterMessage } from '../../../../netlink/traffic-filter-message.ts';
import { parentOf } from '../../../../netlink/traffic-filter-request.ts';

export const words = (...values: readonly number[]): Uint8Array => new Uint8Array(Uint32Array.from(values).buffer);

export function attribute(type: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array((4 + payload.length + 3) & ~3);
  new Uint16Array(bytes.buffer).set([4 + payload.length, type]);
  bytes.set(payload, 4);
  return bytes;
}

const join = (...parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]));
const text = (value: string): Uint8Array => new TextEncoder().encode(`${value}\0`);

export const action = (kind: string, ...parms: readonly number[]): Uint8Array =>
  attribute(1, join(attribute(1, text(kind)), attribute(2, attribute(2, words(...parms)))));
export const program = (name: string): Uint8Array => join(attribute(7, text(name)), attribute(8, words(1)));

/** A filter with an eBPF program, at the place of the fast path. */
export function programFilter(ifindex: number, direction: 'ingress' | 'egress', name: string): TrafficFilterMessage {
  const place = { ifindex, handle: 1, parent: parentOf(direction), protocol: 3, priority: 84, unknown: [] };
  return { ...place, kind: 'bpf', options: program(name) };
}
