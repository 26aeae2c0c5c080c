import type { AddressSpec } from './address-message.ts';
import type { NeighSpec } from './neigh-message.ts';
import { renderQdisc } from './qdisc-request.ts';
import {
  type Argument,
  ip,
  line,
  type NameOf,
  named,
  PROTOCOLS,
  pair,
  SCOPES,
  TABLES,
  verbKeyword,
} from './render-arguments.ts';
import { renderLink } from './render-link.ts';
import { ROUTE_TYPES, renderLookup, renderRoute } from './render-route.ts';
import { renderRule } from './render-rule.ts';
import type { Query, Request } from './request.ts';
import { renderFilter } from './traffic-filter-request.ts';
import { IFA_F_NODAD, IFA_F_NOPREFIXROUTE } from './uapi/if-addr.ts';
import { NTF_PROXY, NTF_ROUTER, NUD_NOARP, NUD_PERMANENT, NUD_REACHABLE, NUD_STALE } from './uapi/neighbour.ts';

/** iproute2 accepts 'if7' for the interface with index 7 when no interface has that name. */
const byIndex: NameOf = (ifindex) => `if${ifindex}`;

/** Renders a request as the equivalent `ip` or `tc` line, for errors, logs and dry runs. @see ip(8), tc(8) */
export function renderRequest(request: Request | Query, nameOf: NameOf = byIndex): string {
  if (request.verb === 'list') {
    return renderList(request, nameOf);
  }
  switch (request.object) {
    case 'link':
      return renderLink(request, nameOf);
    case 'address':
      return renderAddress(request.verb, request.spec, nameOf);
    case 'route':
      return request.verb === 'get'
        ? renderLookup(request.spec, nameOf)
        : renderRoute(request.verb, request.spec, nameOf);
    case 'rule':
      return renderRule(request.verb, request.spec);
    case 'qdisc':
      return renderQdisc(request.verb, request.spec, nameOf);
    case 'filter':
      return renderFilter(request.verb, request.spec, nameOf);
    case 'neigh':
      return renderNeigh(request.verb, request.spec, nameOf);
  }
}

const NEIGH_STATES = {
  [NUD_PERMANENT]: 'permanent',
  [NUD_NOARP]: 'noarp',
  [NUD_REACHABLE]: 'reachable',
  [NUD_STALE]: 'stale',
};

function renderList(request: Query & { verb: 'list' }, nameOf: NameOf): string {
  const { spec } = request;
  const family = typeof spec['family'] === 'number' ? spec['family'] : undefined;
  const text = (key: string, keyword: string, names: Readonly<Record<number, string>> = {}): readonly Argument[] => {
    const value = spec[key];
    return typeof value === 'number'
      ? [keyword, names[value] ?? value]
      : typeof value === 'string'
        ? [keyword, value]
        : [];
  };
  const device = typeof spec['oif'] === 'number' ? spec['oif'] : spec['ifindex'];
  return line(
    ip(family),
    request.object,
    'show',
    text('table', 'table', TABLES),
    pair('dev', typeof device === 'number' ? nameOf(device) : undefined),
    text('protocol', 'proto', PROTOCOLS),
    text('type', 'type', ROUTE_TYPES),
    text('master', 'master'),
    text('kind', 'type'),
    text('group', 'group'),
  );
}

function renderAddress(verb: 'add' | 'replace' | 'delete', spec: AddressSpec, nameOf: NameOf): string {
  const isPeer = spec.local !== undefined && spec.local !== spec.address;
  const prefix = `${spec.address}/${spec.prefixlen}`;
  const flags = spec.flags ?? 0;
  return line(
    ip(spec.family, spec.address),
    'address',
    verbKeyword(verb),
    isPeer ? [spec.local, 'peer', prefix] : prefix,
    pair('broadcast', spec.broadcast),
    'dev',
    nameOf(spec.ifindex),
    pair('label', spec.label),
    pair('scope', named(SCOPES, spec.scope)),
    pair('metric', spec.priority),
    pair('proto', spec.protocol),
    (flags & IFA_F_NODAD) === 0 ? [] : ['nodad'],
    (flags & IFA_F_NOPREFIXROUTE) === 0 ? [] : ['noprefixroute'],
  );
}

function renderNeigh(verb: 'add' | 'replace' | 'delete', spec: NeighSpec, nameOf: NameOf): string {
  const flags = spec.flags ?? 0;
  const isProxy = (flags & NTF_PROXY) !== 0;
  return line(
    ip(spec.family, spec.dst),
    'neigh',
    verbKeyword(verb),
    isProxy ? 'proxy' : undefined,
    spec.dst,
    pair('lladdr', spec.lladdr),
    'dev',
    nameOf(spec.ifindex),
    verb === 'delete' ? [] : pair('nud', named(NEIGH_STATES, spec.state)),
    (flags & NTF_ROUTER) === 0 ? [] : ['router'],
    pair('protocol', named(PROTOCOLS, spec.protocol)),
  );
}
