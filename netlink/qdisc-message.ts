import { rawBytes, text } from './codec.ts';
import { attribute, headerU32, requiredAttribute } from './field.ts';
import { type MessageCodec, type MessageOf, messageCodec, nested } from './message-codec.ts';
import { TCA_KIND, TCA_OPTIONS, TCA_TBF_PARMS } from './uapi/pkt-sched.ts';

/** Longest name of a kind, NUL included. */
const KIND_BYTES = 16;

/** struct tcmsg { u8 family; u8 pad; u16 pad; s32 ifindex; u32 handle; u32 parent; u32 info; } */
export const QDISC = messageCodec('qdisc', 20, {
  ifindex: headerU32(4),
  handle: headerU32(8),
  /** Class it is at; TC_H_ROOT: it takes all that the link sends. */
  parent: headerU32(12),
  info: headerU32(16),
  kind: requiredAttribute(TCA_KIND, text(KIND_BYTES), ''),
  /** Parameters; their form depends on the kind. */
  options: attribute(TCA_OPTIONS, rawBytes),
});

/** Queueing discipline of a link, as the kernel reports it. @see tc(8) */
export type QdiscMessage = MessageOf<typeof QDISC>;

/** What of a discipline's parameters decides whether packets pass; what its kind does not have is absent. */
type QdiscLimits = {
  /** Longest queue: packets, or bytes for bfifo. */
  readonly limit?: number;
  /** Bytes a second. */
  readonly rate?: number;
  /** Largest packet that passes, bytes. */
  readonly burst?: number;
  /** Share of the packets that it drops at random, 0 to 1. */
  readonly loss?: number;
};

const FIFO = messageCodec('qdisc.fifo', 4, { limit: headerU32(0) });
/** struct tc_netem_qopt { u32 latency; u32 limit; u32 loss; u32 gap; u32 duplicate; u32 jitter; } */
const NETEM = messageCodec('qdisc.netem', 24, { limit: headerU32(4), loss: headerU32(8) });
/** struct tc_tbf_qopt: two struct tc_ratespec of 12 bytes, whose last word is the rate; limit; buffer; mtu. */
const TBF_PARMS = messageCodec('qdisc.tbf.parms', 36, {
  rate: headerU32(8),
  limit: headerU32(24),
  buffer: headerU32(28),
});
const TBF = messageCodec('qdisc.tbf', 0, { parms: attribute(TCA_TBF_PARMS, nested(TBF_PARMS)) });

/** The kernel counts time in units of 64 ns. @see include/net/pkt_sched.h PSCHED_SHIFT */
const TICKS_PER_SECOND = 1e9 / 64;
const ALL = 0xffffffff;

/** Reads the limits of a discipline; none for a kind that is not known here. @throws CodecError */
export function qdiscLimits({ kind, options }: Pick<QdiscMessage, 'kind' | 'options'>): QdiscLimits {
  if (options === undefined) return {};
  switch (kind) {
    case 'pfifo':
    case 'bfifo':
    case 'pfifo_head_drop':
      return { limit: read(FIFO, options).limit };
    case 'netem': {
      const { limit, loss } = read(NETEM, options);
      return { limit, loss: loss / ALL };
    }
    case 'tbf': {
      const { rate = 0, buffer = 0 } = read(TBF, options).parms ?? {};
      return { rate, burst: Math.round((rate * buffer) / TICKS_PER_SECOND) };
    }
    default:
      return {};
  }
}

function read<M>(codec: MessageCodec<M>, bytes: Uint8Array): M {
  return codec.decode(bytes);
}
