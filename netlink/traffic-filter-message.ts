import { viewOf } from './byte-view.ts';
import { rawBytes, text, u32 } from './codec.ts';
import { attribute, headerU32, requiredAttribute } from './field.ts';
import { type MessageOf, messageCodec, nested } from './message-codec.ts';
import { walkAttributes } from './rtattr.ts';
import { NLA_TYPE_MASK } from './uapi/netlink.ts';
import {
  TCA_ACT_KIND,
  TCA_ACT_OPTIONS,
  TCA_ACT_PARMS,
  TCA_BPF_FLAG_ACT_DIRECT,
  TCA_BPF_FLAGS,
  TCA_BPF_NAME,
  TCA_KIND,
  TCA_OPTIONS,
} from './uapi/pkt-sched.ts';

/** Longest name of a kind, NUL included. */
const KIND_BYTES = 16;
/** Longest name of a program that tc writes, NUL included. */
const PROGRAM_NAME_BYTES = 256;

/** struct tcmsg; `parent` says where the filter is: at a discipline, or at the ingress or egress of a link. */
export const TRAFFIC_FILTER = messageCodec('filter', 20, {
  ifindex: headerU32(4),
  handle: headerU32(8),
  parent: headerU32(12),
  /** Priority in the upper half, protocol in network order in the lower. */
  info: headerU32(16),
  kind: requiredAttribute(TCA_KIND, text(KIND_BYTES), ''),
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
  name: attribute(TCA_BPF_NAME, text(PROGRAM_NAME_BYTES)),
  flags: attribute(TCA_BPF_FLAGS, u32),
});
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
  const { name = '', flags = 0 } = BPF.decode(options);
  return (flags & TCA_BPF_FLAG_ACT_DIRECT) === 0 ? { actions } : { actions, program: name };
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
