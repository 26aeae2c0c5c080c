import { constants } from 'node:os';
import type { Conn, ReadRequest } from './conn.ts';
import { familyOf } from './encode-request.ts';
import { change, failureOf } from './exchange.ts';
import type { RouteQuery } from './request.ts';
import { ROUTE, type RouteMessage, type RouteSpec } from './route-message.ts';
import { AF_INET6 } from './uapi/netlink.ts';
import { RTM_F_CLONED, RTM_F_FIB_MATCH, RTM_F_LOOKUP_TABLE, RTM_GETROUTE, RTM_NEWROUTE } from './uapi/rtnetlink.ts';

/** Narrows a list of routes; the kernel filters where it can, and all is checked again here. */
type RouteFilter = {
  /** AF_INET or AF_INET6. */
  readonly family: number;
  readonly table?: number;
  /** Ifindex; of a multipath route, any next hop's. */
  readonly oif?: number;
  readonly protocol?: number;
  readonly type?: number;
};

/** Routes of one namespace, all tables. @see ip-route(8) */
export type RouteService = {
  /** Adds a route. @throws NetlinkError EEXIST, ENODEV, ENETUNREACH (gateway not reachable), ENETDOWN */
  add(spec: RouteSpec): void;
  /** Adds or replaces the route with the same destination, tos and priority; idempotent. @throws NetlinkError */
  replace(spec: RouteSpec): void;
  /** Deletes a route. @throws NetlinkError ESRCH when it does not exist */
  delete(spec: RouteSpec): void;
  /** Lists routes, cached ones left out; a table that does not exist is empty. @throws NetlinkError */
  list(filter: RouteFilter): readonly RouteMessage[];
  /** Looks up the route of a packet. @throws NetlinkError ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL */
  get(query: RouteQuery): RouteMessage;
};

/** Creates the route service of a connection. */
export function createRouteService(conn: Conn): RouteService {
  return {
    add: (spec) => change(conn, { object: 'route', verb: 'add', spec }),
    replace: (spec) => change(conn, { object: 'route', verb: 'replace', spec }),
    delete: (spec) => change(conn, { object: 'route', verb: 'delete', spec }),
    list(filter) {
      return conn.dump(listRequest(filter)).messages.filter((route) => matchesFilter(route, filter));
    },
    get(query) {
      const { fibmatch, ...rest } = query;
      const family = familyOf(query.dst);
      return conn.get({
        type: RTM_GETROUTE,
        answerType: RTM_NEWROUTE,
        codec: ROUTE,
        body: { ...rest, family, flags: getFlags(family, fibmatch === true) },
        fail: failureOf({ object: 'route', verb: 'get', spec: query }),
      });
    },
  };
}

function listRequest(filter: RouteFilter): ReadRequest<RouteMessage> {
  return {
    type: RTM_GETROUTE,
    answerType: RTM_NEWROUTE,
    codec: ROUTE,
    body: filter,
    fail: failureOf({ object: 'route', verb: 'list', spec: filter }),
    // The table was never used or has just become empty; or the interface does not exist any more.
    emptyOn: [constants.errno.ENOENT, constants.errno.ENODEV],
  };
}

/**
 * IPv6 always reports the table, and under strict checks refuses the flag that requests it.
 * @see net/ipv6/route.c inet6_rtm_valid_getroute_req
 */
function getFlags(family: number, isFibMatch: boolean): number {
  return (family === AF_INET6 ? 0 : RTM_F_LOOKUP_TABLE) | (isFibMatch ? RTM_F_FIB_MATCH : 0);
}

function matchesFilter(route: RouteMessage, filter: RouteFilter): boolean {
  return (
    route.family === filter.family &&
    (route.flags & RTM_F_CLONED) === 0 &&
    (filter.table === undefined || route.table === filter.table) &&
    (filter.protocol === undefined || route.protocol === filter.protocol) &&
    (filter.type === undefined || route.type === filter.type) &&
    (filter.oif === undefined || route.oif === filter.oif || isHop(route, filter.oif))
  );
}

function isHop(route: RouteMessage, oif: number): boolean {
  return route.multipath?.some((hop) => hop.oif === oif) ?? false;
}
