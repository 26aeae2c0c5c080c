import { constants } from 'node:os';
import type { Conn } from './conn.ts';
import { QDISC, type QdiscMessage } from './qdisc-message.ts';
import { TRAFFIC_FILTER, type TrafficFilterMessage } from './traffic-filter-message.ts';
import { RTM_GETQDISC, RTM_GETTFILTER, RTM_NEWQDISC, RTM_NEWTFILTER } from './uapi/rtnetlink.ts';

/** Traffic filters of one namespace. @see tc(8) */
export type TrafficFilterService = {
  /** Lists those at one discipline, or at the ingress or egress of a link. @throws NetlinkError */
  list(at: { readonly ifindex: number; readonly parent: number }): readonly TrafficFilterMessage[];
};

/** Makes the service of a connection. */
export function createTrafficFilterService(conn: Conn): TrafficFilterService {
  return {
    list: ({ ifindex, parent }) =>
      conn.dump({
        type: RTM_GETTFILTER,
        answerType: RTM_NEWTFILTER,
        codec: TRAFFIC_FILTER,
        body: { ifindex, parent },
        fail: () => ({
          op: 'RTM_GETTFILTER',
          request: `tc filter show dev if${ifindex} parent 0x${parent.toString(16)}`,
        }),
        // Link or discipline does not exist any more.
        emptyOn: [constants.errno.ENODEV, constants.errno.ENOENT, constants.errno.EINVAL],
      }).messages,
  };
}

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
