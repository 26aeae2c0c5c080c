import type { BatchItem, BatchOutcome } from './batch.ts';
import type { ByteWriter } from './byte-writer.ts';
import { Channel } from './channel.ts';
import { Conn } from './conn.ts';
import { CONNTRACK, type ConntrackMessage } from './conntrack-message.ts';
import { beginMessage, endMessage } from './nlmsghdr.ts';
import { openSocket } from './open-socket.ts';
import { AF_UNSPEC, NETLINK_NETFILTER, NLM_F_REQUEST } from './uapi/netlink.ts';
import { IPCTNL_MSG_CT_GET, IPCTNL_MSG_CT_NEW, NFNL_SUBSYS_CTNETLINK } from './uapi/nfnetlink-conntrack.ts';

/** Which entries are listed: those whose `status` has these values in the bits of `statusMask`. */
type StatusFilter = Required<Pick<ConntrackMessage, 'status' | 'statusMask'>>;

/** Which entry is changed, and what of it. */
export type ConntrackUpdate = Omit<Partial<ConntrackMessage>, 'family'> &
  Required<Pick<ConntrackMessage, 'family' | 'tupleOrig'>>;

/** Connection tracking of one network namespace, by netlink. Synchronous. */
export type Ctnetlink = {
  /**
   * Lists the entries of IPv4 and IPv6, each time those of one datagram of the kernel, at most some hundred; other requests may be made between
   * two pieces, also on this connection. An entry that is there all the time is listed, unless the table is resized meanwhile.
   * @throws NetlinkError; EINVAL on a kernel without nf_conntrack_netlink, EPERM without CAP_NET_ADMIN
   */
  list(filter: StatusFilter): Iterable<readonly ConntrackMessage[]>;
  /**
   * Changes entries that are there; what an update leaves out stays as it is. The outcome of one that is gone is ENOENT.
   * @throws NetlinkError when the exchange itself fails
   */
  update(updates: readonly ConntrackUpdate[]): readonly BatchOutcome[];
  /** Closes both sockets. Idempotent. */
  close(): void;
  [Symbol.dispose](): void;
};

const messageType = (type: number): number => (NFNL_SUBSYS_CTNETLINK << 8) | type;

/** Opens a connection in the current network namespace; the caller must close it. @throws LibcError */
export function openCtnetlink(): Ctnetlink {
  const open = (): Conn => new Conn(new Channel(openSocket({ protocol: NETLINK_NETFILTER })));
  const changes = open();
  const lists = openSecond(changes, open);
  const close = (): void => {
    changes.close();
    lists.close();
  };
  return {
    list: (filter) => list(lists, filter),
    update: (updates) => changes.execute(updates.map(updateItem)),
    close,
    [Symbol.dispose]: close,
  };
}

/** The answers of a list that is not over and those of changes would mix on one socket. */
function openSecond(first: Conn, open: () => Conn): Conn {
  try {
    return open();
  } catch (error) {
    first.close();
    throw error;
  }
}

function* list(conn: Conn, { status, statusMask }: StatusFilter): Generator<readonly ConntrackMessage[], void> {
  const pieces = conn.pieces({
    type: messageType(IPCTNL_MSG_CT_GET),
    answerType: messageType(IPCTNL_MSG_CT_NEW),
    codec: CONNTRACK,
    body: { family: AF_UNSPEC, status, statusMask },
    fail: () => ({ op: 'IPCTNL_MSG_CT_GET', request: 'conntrack -L' }),
  });
  // A kernel before 5.18 lists all.
  for (const piece of pieces) yield piece.filter((entry) => ((entry.status ?? 0) & statusMask) === status);
}

function updateItem(update: ConntrackUpdate): BatchItem {
  return {
    codec: CONNTRACK,
    encode(writer: ByteWriter, seq: number, extraFlags: number): void {
      const start = beginMessage(writer, messageType(IPCTNL_MSG_CT_NEW), NLM_F_REQUEST | extraFlags, seq);
      CONNTRACK.write(writer, update);
      endMessage(writer, start);
    },
    fail: () => ({ op: 'IPCTNL_MSG_CT_NEW', request: `conntrack -U ${renderTuple(update)}` }),
  };
}

function renderTuple({ tupleOrig: { ip = {}, proto = {} } }: ConntrackUpdate): string {
  const { srcV4, srcV6 = srcV4, dstV4, dstV6 = dstV4 } = ip;
  const { number, sport, dport } = proto;
  return `-s ${srcV6} -d ${dstV6} -p ${number} --sport ${sport} --dport ${dport}`;
}
