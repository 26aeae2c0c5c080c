import { type AddressService, createAddressService } from './address.ts';
import { createBackgroundDeletes } from './background-deletes.ts';
import { Channel } from './channel.ts';
import { Conn } from './conn.ts';
import { executeAll } from './exchange.ts';
import { createLinkService, type LinkService } from './link.ts';
import type { NetnsRef } from './link-message.ts';
import { createNeighService, type NeighService } from './neigh.ts';
import type { NetlinkError } from './netlink-error.ts';
import { type Sync, withNetns } from './netns.ts';
import { openSocket } from './open-socket.ts';
import type { Request } from './request.ts';
import { createRouteService, type RouteService } from './route.ts';
import { createRuleService, type RuleService } from './rule.ts';
import type { NetlinkCapabilities, NetlinkSocket } from './socket.ts';
import {
  createQdiscService,
  createTrafficFilterService,
  type QdiscService,
  type TrafficFilterService,
} from './traffic-control.ts';
import { NETLINK_ROUTE } from './uapi/netlink.ts';

/** The outcome of one request of a batch. */
type Outcome =
  /** `ifindex`: of a link that was added in this namespace. */
  | { readonly kind: 'ok'; readonly ifindex?: number }
  | { readonly kind: 'error'; readonly error: NetlinkError }
  /** Not sent, because an earlier one failed and `stopOnError` was set. */
  | { readonly kind: 'skipped' };

/**
 * Links, addresses, routes, rules, neighbours and traffic control of one network namespace. Synchronous; one request takes
 * microseconds.
 */
export type Rtnetlink = {
  readonly link: LinkService;
  readonly address: AddressService;
  readonly route: RouteService;
  readonly rule: RuleService;
  readonly neigh: NeighService;
  readonly qdisc: QdiscService;
  readonly trafficFilter: TrafficFilterService;
  /**
   * Address of the socket: notifications of changes made by this connection carry it; it changes after a failed
   * exchange.
   */
  readonly portid: number;
  /** Capabilities of this kernel; what it lacks is done by this library, slower or with less detail. */
  readonly capabilities: NetlinkCapabilities;
  /**
   * Executes many requests with few system calls, in order; nothing is undone when one fails. Without `stopOnError` all
   * are tried, and the result contains the outcome of each.
   * @throws NetlinkError only when the exchange itself fails (ETIMEDOUT, EBADMSG, ENOBUFS, EBADF)
   */
  execute(requests: readonly Request[], options?: { readonly stopOnError?: boolean }): readonly Outcome[];
  /**
   * Calls `run`; in its lists a message that cannot be read is skipped, so that one object never hides the others. What
   * was skipped is described, a line each, at most 16. Elsewhere a list fails with EBADMSG.
   */
  skipUnreadable<T>(run: () => Sync<T>): { readonly result: Sync<T>; readonly unreadable: readonly string[] };
  /** Closes the socket. Idempotent. */
  close(): void;
  [Symbol.dispose](): void;
};

/** Options of a connection. */
type RtnetlinkOptions = {
  /** Longest wait for an answer of the kernel, milliseconds; default 5000. */
  readonly receiveTimeoutMs?: number;
};

/**
 * Opens a connection in the current network namespace; the caller must close it. @throws LibcError. @see rtnetlink(7)
 */
export function openRtnetlink(options: RtnetlinkOptions = {}): Rtnetlink {
  return createRtnetlink(openSocket({ ...options, protocol: NETLINK_ROUTE }));
}

/** Opens a connection in `netns`; it stays in that namespace. @throws LibcError, NetnsError */
export function openRtnetlinkIn(netns: NetnsRef, options: RtnetlinkOptions = {}): Rtnetlink {
  return withNetns(netns, () => openRtnetlink(options));
}

/** Creates a connection on a socket, which it then owns. */
export function createRtnetlink(socket: NetlinkSocket): Rtnetlink {
  const conn = new Conn(new Channel(socket));
  const deletes = createBackgroundDeletes(conn);
  const close = () => {
    deletes.close();
    conn.close();
  };
  return {
    link: createLinkService(conn, deletes),
    address: createAddressService(conn),
    route: createRouteService(conn),
    rule: createRuleService(conn),
    neigh: createNeighService(conn),
    qdisc: createQdiscService(conn),
    trafficFilter: createTrafficFilterService(conn),
    get portid() {
      return conn.portid;
    },
    get capabilities() {
      return conn.capabilities;
    },
    execute(requests, { stopOnError = false } = {}) {
      return stopOnError ? executeUntilError(conn, requests) : executeAll(conn, requests);
    },
    skipUnreadable: (run) => conn.skipUnreadable(run),
    close,
    [Symbol.dispose]: close,
  };
}

/** One by one: in a batch the kernel continues after an error. */
function executeUntilError(conn: Conn, requests: readonly Request[]): Outcome[] {
  const outcomes: Outcome[] = [];
  let hasFailed = false;
  for (const request of requests) {
    const outcome: Outcome = hasFailed ? { kind: 'skipped' } : (executeAll(conn, [request])[0] ?? { kind: 'ok' });
    hasFailed ||= outcome.kind === 'error';
    outcomes.push(outcome);
  }
  return outcomes;
}
