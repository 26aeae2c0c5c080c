import { constants } from 'node:os';
import { operationName, routeMessageOf, ruleMessageOf } from '../../netlink/encode-request.ts';
import type { LinkSpec } from '../../netlink/link-message.ts';
import { NetlinkError } from '../../netlink/netlink-error.ts';
import { renderRequest } from '../../netlink/render-request.ts';
import type { Query, Request, RouteQuery } from '../../netlink/request.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RTM_F_CLONED, RTN_BLACKHOLE, RTN_LOCAL, RTN_PROHIBIT, RTN_UNREACHABLE } from '../../netlink/uapi/rtnetlink.ts';
import { addAddress, addressesOf, deleteAddress } from './addresses.ts';
import { addQdisc, deleteQdisc, qdiscsOf } from './disciplines.ts';
import { addLink, deleteLink, findLink, messageOf, setLink } from './links.ts';
import { lookUp } from './look-up.ts';
import { addNeigh, deleteNeigh, neighsOf } from './neighbours.ts';
import { type Family, linksOf, type Netns } from './netns.ts';
import { notModelled, Refusal } from './refusal.ts';
import { addRoute, deleteRoute, routesOf, shown } from './routes.ts';
import { addRule, deleteRule, rulesOf } from './rules.ts';

type Outcomes = ReturnType<Rtnetlink['execute']>;

/** What a deletion of links in the background takes, milliseconds; those that wait together end together. */
const DELETION_MS = 25;

/** Opens the requests of a namespace. @param portid the address of the socket, which notifications carry */
export function openModelRtnetlink(netns: Netns, portid: number): Rtnetlink {
  let isOpen = true;
  const close = (): void => {
    isOpen = false;
  };
  const answer = <T>(request: Request | Query, run: () => T): T => {
    if (!isOpen) throw errorOf(request, new Refusal('EBADF'));
    try {
      return run();
    } catch (error) {
      if (error instanceof Refusal) throw errorOf(request, error);
      throw error;
    }
  };
  const change = (request: Request) => answer(request, () => changeIn(netns, request, portid));
  const add = (spec: LinkSpec) => change({ object: 'link', verb: 'add', spec });
  return {
    link: {
      add: (spec) => add(spec).ifindex ?? 0,
      addPair: (spec) => {
        const { ifindex = 0, peerIfindex } = add(spec);
        return { ifindex, ...(peerIfindex !== undefined && { peerIfindex }) };
      },
      set: (spec) => void change({ object: 'link', verb: 'set', spec }),
      delete: (spec) => void change({ object: 'link', verb: 'delete', spec }),
      deleteInBackground: async (ifindex) => {
        await netns.machine.clock.sleep(DELETION_MS);
        change({ object: 'link', verb: 'delete', spec: { ifindex } });
      },
      get: (ref) => {
        const link = answer({ object: 'link', verb: 'get', spec: ref }, () => findLink(netns, ref));
        return link === undefined ? undefined : messageOf(link);
      },
      list: (filter = {}) =>
        answer({ object: 'link', verb: 'list', spec: filter }, () => linksOf(netns))
          .filter(
            ({ kind, master, group }) =>
              (filter.kind === undefined || kind === filter.kind) &&
              (filter.master === undefined || master === filter.master) &&
              (filter.group === undefined || group === filter.group),
          )
          .map(messageOf),
    },
    address: {
      add: (spec) => void change({ object: 'address', verb: 'add', spec }),
      replace: (spec) => void change({ object: 'address', verb: 'replace', spec }),
      delete: (spec) => void change({ object: 'address', verb: 'delete', spec }),
      list: (filter = {}) =>
        answer({ object: 'address', verb: 'list', spec: filter }, () => addressesOf(netns, filter)),
    },
    route: {
      add: (spec) => void change({ object: 'route', verb: 'add', spec }),
      replace: (spec) => void change({ object: 'route', verb: 'replace', spec }),
      delete: (spec) => void change({ object: 'route', verb: 'delete', spec }),
      list: (filter) =>
        answer({ object: 'route', verb: 'list', spec: filter }, () => {
          const family = familyOf(filter.family);
          return family === undefined ? [] : routesOf(netns, family, filter.table);
        }).filter(
          ({ oif, protocol, type }) =>
            (filter.oif === undefined || oif === filter.oif) &&
            (filter.protocol === undefined || protocol === filter.protocol) &&
            (filter.type === undefined || type === filter.type),
        ),
      get: (query) => answer({ object: 'route', verb: 'get', spec: query }, () => routeOf(netns, query)),
    },
    rule: {
      add: (spec) => void change({ object: 'rule', verb: 'add', spec }),
      delete: (spec) => void change({ object: 'rule', verb: 'delete', spec }),
      list: (filter) =>
        answer({ object: 'rule', verb: 'list', spec: filter }, () => {
          const family = familyOf(filter.family);
          return family === undefined ? [] : rulesOf(netns, family);
        }).filter(
          ({ priority, table, protocol }) =>
            (filter.priority === undefined || priority === filter.priority) &&
            (filter.table === undefined || table === filter.table) &&
            (filter.protocol === undefined || protocol === filter.protocol),
        ),
    },
    neigh: {
      add: (spec) => void change({ object: 'neigh', verb: 'add', spec }),
      replace: (spec) => void change({ object: 'neigh', verb: 'replace', spec }),
      delete: (spec) => void change({ object: 'neigh', verb: 'delete', spec }),
      list: (filter = {}) => answer({ object: 'neigh', verb: 'list', spec: filter }, () => neighsOf(netns, filter)),
    },
    qdisc: { list: () => qdiscsOf(netns) },
    trafficFilter: { list: () => [] },
    portid,
    capabilities: { extendedAck: true, cappedAck: true, strictDump: true },
    execute: (requests, { stopOnError = false } = {}) => executeAll(requests, change, stopOnError),
    // The model's messages can all be read.
    skipUnreadable: (run) => ({ result: run(), unreadable: [] }),
    close,
    [Symbol.dispose]: close,
  };
}

type Made = { readonly ifindex?: number; readonly peerIfindex?: number };

function executeAll(requests: readonly Request[], change: (request: Request) => Made, stopOnError: boolean): Outcomes {
  let hasFailed = false;
  return requests.map((request): Outcomes[number] => {
    if (hasFailed && stopOnError) return { kind: 'skipped' };
    try {
      return { kind: 'ok', ...change(request) };
    } catch (error) {
      if (!(error instanceof NetlinkError)) throw error;
      hasFailed = true;
      return { kind: 'error', error };
    }
  });
}

function changeIn(netns: Netns, request: Request, by: number): Made {
  const { object, verb } = request;
  switch (object) {
    case 'link':
      if (verb === 'add') return addLink(netns, request.spec, by);
      if (verb === 'set') setLink(netns, request.spec);
      else deleteLink(netns, request.spec, by);
      return {};
    case 'address':
      if (verb === 'delete') deleteAddress(netns, request.spec, by);
      else addAddress(netns, request.spec, verb, by);
      return {};
    case 'route':
      if (verb === 'delete') deleteRoute(netns, routeMessageOf(request.spec, true), by);
      else addRoute(netns, routeMessageOf(request.spec, false), verb, by);
      return {};
    case 'rule': {
      const { priority } = request.spec;
      const message = { ...ruleMessageOf(request.spec, verb === 'delete'), priority };
      if (verb === 'delete') deleteRule(netns, message, by);
      else addRule(netns, message, verb === 'add', by);
      return {};
    }
    case 'neigh':
      if (verb === 'delete') deleteNeigh(netns, request.spec, by);
      else addNeigh(netns, request.spec, verb, by);
      return {};
    case 'qdisc':
      if (verb === 'add') addQdisc(netns, request.spec, by);
      else deleteQdisc(netns, request.spec, by);
      return {};
    case 'filter':
      throw notModelled('traffic filter');
  }
}

/** The answer to `ip route get`. */
function routeOf(netns: Netns, query: RouteQuery): RouteMessage {
  const family = query.dst.includes(':') ? 6 : 4;
  const found = lookUp(netns, family, query);
  if (found === undefined) throw new Refusal('ENETUNREACH');
  if (found.type === RTN_UNREACHABLE) throw new Refusal('EHOSTUNREACH');
  if (found.type === RTN_PROHIBIT) throw new Refusal('EACCES');
  if (found.type === RTN_BLACKHOLE) throw new Refusal('EINVAL');
  if (query.fibmatch === true) return shown(netns, found);
  const source = found.prefsrc ?? sourceOf(netns, family, found.oif);
  return {
    ...shown(netns, found),
    dst: `${query.dst}/${family === 4 ? 32 : 128}`,
    ...(found.type === RTN_LOCAL && { oif: 1 }),
    ...(source !== undefined && { prefsrc: source }),
    ...(family === 4 && { flags: RTM_F_CLONED, protocol: 0, scope: 0 }),
  };
}

/** The address that the kernel chooses for what leaves by a link: one of the link, or else of another. */
function sourceOf(netns: Netns, family: Family, oif: number | undefined): string | undefined {
  const own = netns.links.get(oif ?? 0);
  const others = linksOf(netns).filter((link) => link !== own);
  for (const link of own === undefined ? others : [own, ...others]) {
    const address = link.addresses[family].find(({ scope }) => scope < 253);
    if (address !== undefined) return address.local ?? address.address;
  }
  return undefined;
}

function familyOf(family: number): Family | undefined {
  return family === AF_INET ? 4 : family === AF_INET6 ? 6 : undefined;
}

function errorOf(request: Request | Query, { code, text }: Refusal): NetlinkError {
  return new NetlinkError({
    errno: constants.errno[code],
    op: operationName(request.object, request.verb),
    request: renderRequest(request),
    ...(text !== undefined && { extack: { message: text } }),
  });
}
