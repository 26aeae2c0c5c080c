import type { Conn } from './conn.ts';
import { QDISC, type QdiscMessage } from './qdisc-message.ts';
import { RTM_GETQDISC, RTM_NEWQDISC } from './uapi/rtnetlink.ts';

/** Queueing disciplines of one namespace. @see tc(8) */
export type QdiscService = {
  /** Lists those of all links. @throws NetlinkError */
  list(): readonly QdiscMessage[];
};

/** Makes the service of a connection. */
export function createQdiscService(conn: Conn): QdiscService {
  return {
    list: () =>
      conn.dump({
        type: RTM_GETQDISC,
        answerType: RTM_NEWQDISC,
        codec: QDISC,
        body: {},
        fail: () => ({ op: 'RTM_GETQDISC', request: 'tc qdisc show' }),
      }).messages,
  };
}
