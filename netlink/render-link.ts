import type { LinkChange, LinkProperties, LinkRef, LinkSpec } from './link-message.ts';
import { type Argument, line, type NameOf, pair } from './render-arguments.ts';
import type { Query, Request } from './request.ts';

/** Renders a request about links. @see ip-link(8) */
export function renderLink(
  request: (Request & { object: 'link' }) | (Query & { object: 'link'; verb: 'get' }),
  nameOf: NameOf,
): string {
  if (request.verb === 'add') {
    return renderNewLink(request.spec, nameOf);
  }
  if (request.verb === 'set') {
    return renderLinkChange(request.spec, nameOf);
  }
  return line('ip link', request.verb === 'delete' ? 'del' : 'show', 'dev', linkName(request.spec, nameOf));
}

function linkName(ref: LinkRef, nameOf: NameOf): string {
  return 'ifindex' in ref ? nameOf(ref.ifindex) : ref.ifname;
}

function renderNewLink(spec: LinkSpec, nameOf: NameOf): string {
  return line(
    'ip link add',
    pair('name', spec.ifname),
    pair('index', spec.ifindex),
    properties(spec, nameOf),
    queues(spec),
    'type',
    spec.kind,
    spec.kind === 'veth'
      ? [
          'peer',
          'name',
          spec.peer.ifname,
          ...pair('index', spec.peer.ifindex),
          ...properties(spec.peer, nameOf),
          ...queues(spec.peer),
        ]
      : [],
    spec.kind === 'bridge' && spec.bridge !== undefined
      ? [
          ...pair('forward_delay', spec.bridge.forwardDelay),
          ...pair('hello_time', spec.bridge.helloTime),
          ...pair('max_age', spec.bridge.maxAge),
          ...pair('ageing_time', spec.bridge.ageingTime),
          ...pair('stp_state', spec.bridge.stpState),
          ...pair('priority', spec.bridge.bridgePriority),
          ...pair('vlan_filtering', spec.bridge.vlanFiltering),
          ...pair('vlan_default_pvid', spec.bridge.vlanDefaultPvid),
        ]
      : [],
  );
}

function queues(spec: { readonly numTxQueues?: number; readonly numRxQueues?: number }): readonly Argument[] {
  return [...pair('numtxqueues', spec.numTxQueues), ...pair('numrxqueues', spec.numRxQueues)];
}

function renderLinkChange(change: LinkChange, nameOf: NameOf): string {
  return line(
    'ip link set dev',
    nameOf(change.ifindex),
    pair('name', change.ifname),
    properties(change, nameOf),
    portParameters(change.bridgePort),
  );
}

/** Switches of a port of a bridge that a user here sets, by their words. */
const PORT_SWITCHES = {
  mode: 'hairpin',
  isolated: 'isolated',
  unicastFlood: 'flood',
  bcastFlood: 'bcast_flood',
  learning: 'learning',
  proxyarp: 'proxy_arp',
  locked: 'locked',
} as const;

function portParameters(port: LinkChange['bridgePort'] = {}): readonly Argument[] {
  const values: Readonly<Record<string, unknown>> = port;
  const set = Object.entries(PORT_SWITCHES).flatMap(([field, word]) =>
    values[field] === undefined ? [] : [word, values[field] === 0 ? 'off' : 'on'],
  );
  return set.length === 0 ? [] : ['type', 'bridge_slave', ...set];
}

function properties(spec: LinkProperties, nameOf: NameOf): readonly Argument[] {
  return [
    ...pair('address', spec.address),
    ...pair('broadcast', spec.broadcast),
    ...pair('mtu', spec.mtu),
    ...pair('group', spec.group),
    ...pair('txqueuelen', spec.txqlen),
    ...pair('alias', spec.ifalias),
    ...(spec.master === 0 ? ['nomaster'] : pair('master', spec.master === undefined ? undefined : nameOf(spec.master))),
    ...pair('netns', spec.netns === undefined ? undefined : `/proc/self/fd/${spec.netns.fd}`),
    ...(spec.promisc === undefined ? [] : ['promisc', spec.promisc ? 'on' : 'off']),
    ...(spec.arp === undefined ? [] : ['arp', spec.arp ? 'on' : 'off']),
    ...(spec.up === undefined ? [] : [spec.up ? 'up' : 'down']),
  ];
}
