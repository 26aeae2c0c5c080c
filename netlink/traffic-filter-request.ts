import { line, type NameOf } from './render-arguments.ts';
import type { BpfFilterMessage } from './traffic-filter-message.ts';
import { TC_H_INGRESS_EGRESS, TC_H_MIN_EGRESS, TC_H_MIN_INGRESS, TCA_BPF_FLAG_ACT_DIRECT } from './uapi/pkt-sched.ts';

/** Where packets pass a filter of a clsact discipline: coming in by the link, or leaving by it. */
type TrafficDirection = 'ingress' | 'egress';

/** A place of a filter: at most one filter has it. */
export type TrafficFilterRef = {
  readonly ifindex: number;
  readonly direction: TrafficDirection;
  /** Filters are asked in this order, from 1. */
  readonly priority: number;
  readonly handle: number;
};

/** A filter for packets of all protocols whose eBPF program decides by itself ("direct-action"). */
export type TrafficFilterSpec = TrafficFilterRef & {
  /** The loaded program; the kernel keeps it as long as the filter is there. `name` is shown by tc(8). */
  readonly program: { readonly fd: number; readonly name: string };
};

/** ETH_P_ALL. @see uapi/linux/if_ether.h */
export const ETH_P_ALL = 3;

const PARENT = {
  ingress: (TC_H_INGRESS_EGRESS | TC_H_MIN_INGRESS) >>> 0,
  egress: (TC_H_INGRESS_EGRESS | TC_H_MIN_EGRESS) >>> 0,
} as const;

/** Returns the parent of the filters at one direction of a clsact discipline. */
export function parentOf(direction: TrafficDirection): number {
  return PARENT[direction];
}

/** Translates a filter, or the place of one, into the fields of its message. */
export function filterMessageOf(spec: TrafficFilterRef | TrafficFilterSpec): Partial<BpfFilterMessage> {
  const { ifindex, direction, priority, handle } = spec;
  const place = { ifindex, handle, parent: parentOf(direction), priority, protocol: ETH_P_ALL, kind: 'bpf' };
  if (!('program' in spec)) return place;
  const { fd, name } = spec.program;
  return { ...place, options: { fd, name, flags: TCA_BPF_FLAG_ACT_DIRECT } };
}

/**
 * Renders a request as the equivalent `tc` line. tc takes a program from a file, and no descriptor: in place of the file
 * stands the program's name. @see tc-bpf(8)
 */
export function renderFilter(
  verb: 'replace' | 'delete',
  spec: TrafficFilterRef | TrafficFilterSpec,
  nameOf: NameOf,
): string {
  const { ifindex, direction, priority, handle } = spec;
  const place = ['dev', nameOf(ifindex), direction, 'pref', priority, 'protocol', 'all', 'handle', handle, 'bpf'];
  const program = 'program' in spec ? ['direct-action', 'pinned', spec.program.name] : [];
  return line('tc filter', verb === 'delete' ? 'del' : verb, place, program);
}
