import { viewOf } from './byte-view.ts';
import { rawBytes, text, u32 } from './codec.ts';
import { attribute, headerBe16, headerU16, headerU32, requiredAttribute } from './field.ts';
import { type MessageOf, messageCodec, nested } from './message-codec.ts';
import { walkAttributes } from './rtattr.ts';
import { NLA_TYPE_MASK } from './uapi/netlink.ts';
import {
  TCA_ACT_KIND,
  TCA_ACT_OPTIONS,
  TCA_ACT_PARMS,
  TCA_BPF_FD,
  TCA_BPF_FLAG_ACT_DIRECT,
  TCA_BPF_FLAGS,
  TCA_BPF_ID,
  TCA_BPF_NAME,
  TCA_BPF_TAG,
  TCA_KIND,
  TCA_OPTIONS,
} from './uapi/pkt-sched.ts';

/** Longest name of a kind, NUL included. */
const KIND_BYTES = 16;
/** Longest name of a program that tc writes, NUL included. */
const PROGRAM_NAME_BYTES = 256;

/** struct tcmsg. */
const FILTER_HEADER = {
  ifindex: headerU32(4),
  handle: headerU32(8),
  /** Where the filter is: at a discipline, or at the ingress or egress of a link. */
  parent: headerU32(12),
  /** Of the packets that are filtered: ETH_P_*. */
  protocol: headerBe16(16),
  /** `pref` of tc(8): filters are asked in this order. */
  priority: headerU16(18),
  kind: requiredAttribute(TCA_KIND, text(KIND_BYTES), ''),
} as const;

/** Messages about filters of any kind. */
export const TRAFFIC_FILTER = messageCodec('filter', 20, {
  ...FILTER_HEADER,
  /** Conditions and actions; their form depends on the kind. The kernel also lists a filter's chain without them. */
  options: attribute(TCA_OPTIONS, rawBytes),
});

/** Traffic filter of a link, as the kernel reports it. @see tc(8) */
export type TrafficFilterMessage = MessageOf<typeof TRAFFIC_FILTER>;

/** One action of a filter. */
export type TrafficAction = {
  /** 'gact', 'mirred', 'police'… */
  readonly kind: string;
  /** TC_ACT_*: what becomes of the packet then; -1: the next action or filter decides. */
  readonly control: number;
  /** Where mirred puts the packet: TCA_EGRESS_REDIR and so on, and the ifindex. */
  readonly mirred?: { readonly how: number; readonly ifindex: number };
};

/** What a filter does, as far as its form is known here. */
type FilterEffect = {
  readonly actions: readonly TrafficAction[];
  /** Name of the eBPF program that decides by itself ("direct-action"). */
  readonly program?: string;
};

/** Attribute with the actions, by kind of filter. */
const ACTIONS: Readonly<Record<string, number>> = { basic: 3, bpf: 1, flower: 3, fw: 4, matchall: 2, u32: 7 };

const BPF = messageCodec('filter.bpf', 0, {
  /** Only in requests. */
  fd: attribute(TCA_BPF_FD, u32),
  name: attribute(TCA_BPF_NAME, text(PROGRAM_NAME_BYTES)),
  flags: attribute(TCA_BPF_FLAGS, u32),
  /** Hash of the program's instructions; only in answers, as `id`. */
  tag: attribute(TCA_BPF_TAG, rawBytes),
  id: attribute(TCA_BPF_ID, u32),
});

/** Messages about filters of kind bpf. */
export const BPF_FILTER = messageCodec('filter', 20, {
  ...FILTER_HEADER,
  options: attribute(TCA_OPTIONS, nested(BPF)),
});

/** A filter of kind bpf. */
export type BpfFilterMessage = MessageOf<typeof BPF_FILTER>;

/** The program of a filter of kind bpf. */
type FilterProgram = {
  /** As the filter calls it; not always the program's own name. */
  readonly name: string;
  /** Number of the loaded program; 0 for one in classic BPF. */
  readonly id: number;
  /** Hash of its instructions, 16 hexadecimal digits; empty for one in classic BPF. */
  readonly tag: string;
  /** True when its result is the verdict on the packet. */
  readonly isDirectAction: boolean;
};

/** Reads the program of a filter; undefined for a filter of another kind, or without options. @throws CodecError */
export function filterProgram({
  kind,
  options,
}: Pick<TrafficFilterMessage, 'kind' | 'options'>): FilterProgram | undefined {
  if (kind !== 'bpf' || options === undefined) return undefined;
  const { name = '', flags = 0, tag = new Uint8Array(), id = 0 } = BPF.decode(options);
  return { name, id, tag: Buffer.from(tag).toString('hex'), isDirectAction: (flags & TCA_BPF_FLAG_ACT_DIRECT) !== 0 };
}
/** struct tc_gen { u32 index; u32 capab; int action; int refcnt; int bindcnt; }, mirred: int how; u32 ifindex; */
const PARMS = messageCodec('filter.action.parms', 12, { control: headerU32(8) });
const MIRRED_PARMS = messageCodec('filter.action.mirred', 28, { how: headerU32(20), ifindex: headerU32(24) });
const ACTION_OPTIONS = messageCodec('filter.action.options', 0, { parms: attribute(TCA_ACT_PARMS, rawBytes) });
const ACTION = messageCodec('filter.action', 0, {
  kind: requiredAttribute(TCA_ACT_KIND, text(KIND_BYTES), ''),
  options: attribute(TCA_ACT_OPTIONS, nested(ACTION_OPTIONS)),
});

/** Reads what a filter does with the packets that it matches. @throws CodecError */
export function filterEffect({ kind, options }: Pick<TrafficFilterMessage, 'kind' | 'options'>): FilterEffect {
  if (options === undefined) return { actions: [] };
  const actions = actionsOf(options, ACTIONS[kind]);
  if (kind !== 'bpf') return { actions };
  const program = filterProgram({ kind, options });
  return program?.isDirectAction === true ? { actions, program: program.name } : { actions };
}

function actionsOf(options: Uint8Array, attributeType: number | undefined): readonly TrafficAction[] {
  const found: TrafficAction[] = [];
  const view = viewOf(options);
  walkAttributes(view, 0, options.length, (type, offset, length) => {
    if ((type & NLA_TYPE_MASK) !== attributeType) return;
    // One attribute for each action; their numbers are their order.
    walkAttributes(view, offset, offset + length, (_order, at, size) => {
      const { kind, options: details } = ACTION.decode(options.slice(at, at + size));
      const parms = details?.parms;
      if (parms !== undefined && parms.length >= PARMS.headerBytes) found.push(actionOf(kind, parms));
    });
  });
  return found;
}

function actionOf(kind: string, parms: Uint8Array): TrafficAction {
  const control = PARMS.decode(parms.slice(0, PARMS.headerBytes)).control | 0;
  if (kind !== 'mirred' || parms.length < MIRRED_PARMS.headerBytes) return { kind, control };
  const { how, ifindex } = MIRRED_PARMS.decode(parms.slice(0, MIRRED_PARMS.headerBytes));
  return { kind, control, mirred: { how, ifindex } };
}
