import { constants } from 'node:os';
import type { Conn } from './conn.ts';
import { change, failureOf } from './exchange.ts';
import { NEIGH, type NeighMessage, type NeighSpec } from './neigh-message.ts';
import { AF_UNSPEC } from './uapi/netlink.ts';
import { RTM_GETNEIGH, RTM_NEWNEIGH } from './uapi/rtnetlink.ts';

/** Narrows a list of neighbours. */
type NeighFilter = { readonly ifindex?: number; readonly family?: number };

/** Neighbour table (ARP, NDP) of one namespace. @see ip-neighbour(8) */
export type NeighService = {
  /** Adds a neighbour. @throws NetlinkError EEXIST, ENODEV */
  add(spec: NeighSpec): void;
  /** Adds or changes; idempotent. @throws NetlinkError ENODEV */
  replace(spec: NeighSpec): void;
  /** Deletes a neighbour. @throws NetlinkError ENOENT when it does not exist */
  delete(spec: NeighSpec): void;
  /** Lists neighbours. @throws NetlinkError */
  list(filter?: NeighFilter): readonly NeighMessage[];
};

/** Makes the neighbour service of a connection. */
export function createNeighService(conn: Conn): NeighService {
  return {
    add: (spec) => change(conn, { object: 'neigh', verb: 'add', spec }),
    replace: (spec) => change(conn, { object: 'neigh', verb: 'replace', spec }),
    delete: (spec) => change(conn, { object: 'neigh', verb: 'delete', spec }),
    list(filter = {}) {
      const { ifindex, family } = filter;
      const { messages } = conn.dump({
        type: RTM_GETNEIGH,
        answerType: RTM_NEWNEIGH,
        codec: NEIGH,
        // A kernel with strict checks accepts the interface as an attribute only.
        body: { family: family ?? AF_UNSPEC, ...(ifindex === undefined ? {} : { nhIfindex: ifindex }) },
        fail: failureOf({ object: 'neigh', verb: 'list', spec: filter }),
        // The interface does not exist any more.
        emptyOn: [constants.errno.ENODEV],
      });
      return messages.filter(
        (neigh) =>
          (ifindex === undefined || neigh.ifindex === ifindex) && (family === undefined || neigh.family === family),
      );
    },
  };
}
