import type { BackgroundDeletes } from './background-deletes.ts';
import type { NewLink } from './batch.ts';
import type { Conn, ReadRequest } from './conn.ts';
import { addLink, change, failureOf, linkReadRequest } from './exchange.ts';
import { LINK, type LinkChange, type LinkMessage, type LinkRef, type LinkSpec } from './link-message.ts';
import { isNetlinkError } from './netlink-error.ts';
import { RTEXT_FILTER_SKIP_STATS } from './uapi/if-link.ts';
import { RTM_GETLINK, RTM_NEWLINK } from './uapi/rtnetlink.ts';

/** Narrows a list of links; `kind` and `master` are filtered by the kernel where it can. */
type LinkFilter = { readonly kind?: string; readonly master?: number; readonly group?: number };

/** Network interfaces of one namespace. @see ip-link(8) */
export type LinkService = {
  /**
   * Makes a link; a veth pair with both ends in one request.
   * @returns its ifindex; 0 if it was created in another namespace without a wanted index
   * @throws NetlinkError EEXIST, EOPNOTSUPP (no such kind), ENOTCONN (a peer created up)
   */
  add(spec: LinkSpec): number;
  /**
   * As `add`, for a veth pair: returns the other end's ifindex too. It is absent where the kernel does not report
   * it: an old one, or both ends have the same index.
   */
  addPair(spec: LinkSpec & { readonly kind: 'veth' }): NewLink;
  /** Changes a link; idempotent. @throws NetlinkError ENODEV, EBUSY (a rename while up) */
  set(change: LinkChange): void;
  /** Deletes a link; blocks about 25 ms for a veth, whose other end is deleted too. @throws NetlinkError ENODEV */
  delete(ref: LinkRef): void;
  /**
   * Deletes a link from the thread pool, so that the event loop is not blocked. Links that wait at the same time are
   * deleted together. Rejects with NetlinkError ENODEV.
   */
  deleteInBackground(ifindex: number): Promise<void>;
  /** Returns undefined when there is no such link. @throws NetlinkError */
  get(ref: LinkRef): LinkMessage | undefined;
  /** Lists links without their statistics. @throws NetlinkError */
  list(filter?: LinkFilter): readonly LinkMessage[];
};

/** Creates the link service of a connection. */
export function createLinkService(conn: Conn, deletes: BackgroundDeletes): LinkService {
  return {
    add: (spec) => addLink(conn, spec).ifindex,
    addPair: (spec) => addLink(conn, spec),
    set: (spec) => change(conn, { object: 'link', verb: 'set', spec }),
    delete: (spec) => change(conn, { object: 'link', verb: 'delete', spec }),
    deleteInBackground: (ifindex) => deletes.delete(ifindex),
    get(ref) {
      try {
        return conn.get(linkReadRequest(ref));
      } catch (error) {
        if (isNetlinkError(error, 'ENODEV')) {
          return undefined;
        }
        throw error;
      }
    },
    list(filter = {}) {
      const { kind, master, group } = filter;
      const request: ReadRequest<LinkMessage> = {
        type: RTM_GETLINK,
        answerType: RTM_NEWLINK,
        codec: LINK,
        body: {
          extMask: RTEXT_FILTER_SKIP_STATS,
          ...(kind === undefined ? {} : { kind }),
          ...(master === undefined ? {} : { master }),
        },
        fail: failureOf({ object: 'link', verb: 'list', spec: filter }),
      };
      return conn
        .dump(request)
        .messages.filter(
          (link) =>
            (kind === undefined || link.kind === kind) &&
            (master === undefined || link.master === master) &&
            (group === undefined || link.group === group),
        );
    },
  };
}
