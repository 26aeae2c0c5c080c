import type { ByteWriter } from './byte-writer.ts';
import { type Channel, type RequestContext, receiveBuffer, sendBuffer } from './channel.ts';
import type { NetlinkError } from './netlink-error.ts';
import { errnoOf, invalidRequest, refusalOf, type SentShape } from './refusal.ts';
import { walkAttributes } from './rtattr.ts';
import { IFLA_LINK } from './uapi/if-link.ts';
import { NLM_F_ACK, NLMSG_ERROR, NLMSG_HDRLEN } from './uapi/netlink.ts';

/** More messages in one write are not faster; all acknowledgements of 200 would still fit into the receive buffer. */
const MAX_BATCH_MESSAGES = 128;
/** A new message is begun below this fill only; the largest one (a multipath route) is far smaller than the rest. */
const MAX_BATCH_BYTES = 96 * 1024;
const IFINFOMSG_BYTES = 16;

/** One message that changes something. */
export type BatchItem = RequestContext & {
  /** Appends the whole message. @throws CodecError */
  encode(writer: ByteWriter, seq: number, extraFlags: number): void;
  readonly codec: SentShape;
};

/** A new link as the kernel echoed it. */
export type NewLink = {
  readonly ifindex: number;
  /** Of a veth pair: ifindex of the other end, in that end's namespace. Kernels omit it when both are equal. */
  readonly peerIfindex?: number;
};

/** Result of one message of a batch. */
export type BatchOutcome =
  | ({ readonly kind: 'ok' } & Partial<NewLink>)
  | { readonly kind: 'error'; readonly error: NetlinkError };

const OK: BatchOutcome = Object.freeze({ kind: 'ok' });

/**
 * Sends messages, many to a write, with an acknowledgement for the last of each write: the kernel reports errors of all
 * the others anyway, and continues after them. Nothing is undone.
 * @throws NetlinkError when the exchange itself fails; what was done is then unknown
 */
export function executeBatch(channel: Channel, items: readonly BatchItem[]): BatchOutcome[] {
  const outcomes: BatchOutcome[] = [];
  while (outcomes.length < items.length) {
    const first = outcomes.length;
    const { starts, last } = encodeWrite(channel, items, outcomes);
    const context = items[first];
    if (context !== undefined && last >= 0) {
      channel.send(context);
      receiveOutcomes(channel, context, { items, outcomes, first, starts, last });
    }
  }
  return outcomes;
}

/**
 * As `executeBatch`, from the thread pool and in one write: of at most `MAX_BATCH_MESSAGES` items. No other exchange may
 * begin on the channel until the promise settles. Rejects with NetlinkError when the exchange itself fails.
 */
export async function executeBatchInBackground(
  channel: Channel,
  items: readonly [BatchItem, ...BatchItem[]],
): Promise<BatchOutcome[]> {
  if (items.length > MAX_BATCH_MESSAGES) {
    throw new RangeError(`${items.length} messages do not fit into one write of ${MAX_BATCH_MESSAGES}`);
  }
  const outcomes: BatchOutcome[] = [];
  const { starts, last } = encodeWrite(channel, items, outcomes);
  if (last >= 0) {
    await channel.sendInBackground(items[0]);
    receiveOutcomes(channel, items[0], { items, outcomes, first: 0, starts, last });
  }
  return outcomes;
}

/** The messages of one write: `items[first]` and the following, with their outcomes and start positions. */
type SentWrite = {
  readonly items: readonly BatchItem[];
  readonly outcomes: BatchOutcome[];
  readonly first: number;
  readonly starts: readonly number[];
  /** Index, in the write, of the message that is acknowledged; -1 when none could be encoded. */
  readonly last: number;
};

/**
 * Fills the send buffer with the items that have no outcome yet. Presets each to the outcome that holds unless the
 * kernel reports an error.
 */
function encodeWrite(
  channel: Channel,
  items: readonly BatchItem[],
  outcomes: BatchOutcome[],
): Pick<SentWrite, 'starts' | 'last'> {
  const seq = channel.begin(MAX_BATCH_MESSAGES);
  const starts: number[] = [];
  let last = -1;
  while (starts.length < MAX_BATCH_MESSAGES && sendBuffer.position < MAX_BATCH_BYTES) {
    const item = items[outcomes.length];
    if (item === undefined) {
      break;
    }
    const start = sendBuffer.position;
    try {
      item.encode(sendBuffer, seq + starts.length, 0);
      last = starts.length;
      outcomes.push(OK);
    } catch (error) {
      sendBuffer.position = start;
      outcomes.push({ kind: 'error', error: invalidRequest(error, item) });
    }
    starts.push(start);
  }
  const lastStart = starts[last];
  if (lastStart !== undefined) {
    const { u16 } = sendBuffer.view;
    u16[(lastStart >> 1) + 3] = (u16[(lastStart >> 1) + 3] ?? 0) | NLM_F_ACK;
  }
  return { starts, last };
}

/** Reads until the last message of the write is acknowledged. */
function receiveOutcomes(
  channel: Channel,
  context: RequestContext,
  { items, outcomes, first, starts, last }: SentWrite,
): void {
  do {
    channel.next(context);
    const at = first + channel.index;
    const item = items[at];
    const start = starts[channel.index];
    if (channel.type !== NLMSG_ERROR) {
      const link = echoedLink(channel);
      if (link !== undefined && outcomes[at] === OK) {
        outcomes[at] = { kind: 'ok', ...link };
      }
    } else if (item !== undefined && start !== undefined) {
      const errno = errnoOf(channel);
      if (errno !== 0) {
        outcomes[at] = { kind: 'error', error: refusalOf(channel, errno, item, { at: start, shape: item.codec }) };
      }
    }
  } while (channel.type !== NLMSG_ERROR || channel.index !== last);
}

/** Reads the echo of a new link: struct ifinfomsg, which has its index, then attributes. */
function echoedLink({ start, end }: Channel): NewLink | undefined {
  const attributes = start + NLMSG_HDRLEN + IFINFOMSG_BYTES;
  const ifindex = end >= attributes ? receiveBuffer.readU32(start + NLMSG_HDRLEN + 4) : 0;
  if (ifindex === 0) {
    return undefined;
  }
  let peerIfindex = 0;
  walkAttributes(receiveBuffer, attributes, end, (type, offset, length) => {
    if (type === IFLA_LINK && length === 4) {
      peerIfindex = receiveBuffer.readU32(offset);
    }
  });
  return peerIfindex === 0 ? { ifindex } : { ifindex, peerIfindex };
}
