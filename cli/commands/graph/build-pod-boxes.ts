import { flowFilterOf } from '../../../dataplane/fast-path/flow-filter.ts';
import { hostPrefix } from '../../../dataplane/ip-prefix.ts';
import { TABLE_MAIN } from '../../../dataplane/numbers.ts';
import { linkId, podId } from '../../../inspection/catalogue/element-id.ts';
import type { ModelPod } from '../../../inspection/model/node-model.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NetnsFacts, NodeFacts } from '../../../inspection/node/node-facts.ts';
import { ownPrefix } from '../../../netlink/address-message.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { IFF_LOWER_UP, IFF_UP } from '../../../netlink/uapi/if-link.ts';
import { NUD_PERMANENT } from '../../../netlink/uapi/neighbour.ts';
import { RT_SCOPE_UNIVERSE, RT_TABLE_LOCAL } from '../../../netlink/uapi/rtnetlink.ts';
import { routeLine } from './build-table-boxes.ts';
import type { GraphFact, GraphNode, GraphState } from './graph.ts';

/** Builds the two boxes of a Pod's interface: the Pod, and the host end of its veth pair. */
export function buildPodBoxes(view: ModelPod, group: string, facts: NodeFacts): readonly GraphNode[] {
  const pod = podBox(view, group, facts);
  return [pod, vethBox(view, group, pod.id, facts)];
}

function podBox(view: ModelPod, group: string, facts: NodeFacts): GraphNode {
  const { key, inside } = view.pod;
  const state: GraphState = view.lease === undefined || view.lease.state === 'active' ? 'ok' : 'warning';
  const insideLinks = ifKnown(inside)?.links ?? [];
  return {
    id: podId(key),
    kind: 'pod',
    lane: 'pods',
    group,
    title: view.title,
    lines: [view.ips.join(', ') || 'no address'],
    owner: 'ours',
    state,
    elements: [
      podId(key),
      ...insideLinks.map(({ ifindex }) => linkId(ifindex, key)),
      ...view.ips.map((ip) => `address:${ip}`),
    ],
    facts: [leaseFact(view), insideFact(view), ...hostFacts(view, facts)].filter(({ rows }) => rows.length > 0),
    findings: [],
  };
}

function vethBox(view: ModelPod, group: string, podNode: string, facts: NodeFacts): GraphNode {
  const { hostLink, pod, lease } = view;
  const common = { kind: 'veth', lane: 'pods', group, owner: 'ours', findings: [], podNode } as const;
  if (hostLink === undefined) {
    const isIpam = lease?.plugin === 'ipam';
    return {
      ...common,
      id: `veth:${pod.key}`,
      title: isIpam ? 'not our link' : 'no host veth',
      lines: [isIpam ? 'address only' : 'not there'],
      state: isIpam ? 'unknown' : 'missing',
      elements: [`veth:${pod.key}`],
      facts: [],
    };
  }
  return {
    ...common,
    id: linkId(hostLink.ifindex),
    title: hostLink.ifname,
    lines: [`#${hostLink.ifindex} · ${linkState(hostLink)}`],
    state: isUp(hostLink) ? 'ok' : 'broken',
    elements: [linkId(hostLink.ifindex)],
    facts: [{ title: 'Host veth', rows: linkRows(hostLink, facts) }],
  };
}

/** Reports whether a link is administratively up. */
export function isUp(link: Pick<LinkMessage, 'flags'>): boolean {
  return (link.flags & IFF_UP) !== 0;
}

/** Returns the state of a link as a word: 'up', 'down', 'no carrier'. */
export function linkState(link: Pick<LinkMessage, 'flags'>): string {
  if (!isUp(link)) return 'down';
  return (link.flags & IFF_LOWER_UP) !== 0 ? 'up' : 'no carrier';
}

/** Returns the properties of a link of the host, one line each. */
export function linkRows(link: LinkMessage, { host }: Pick<NodeFacts, 'host'>): readonly string[] {
  const addresses = host.addresses
    .filter(({ ifindex }) => ifindex === link.ifindex)
    .map((message) => `address ${ownPrefix(message)}`);
  const rpFilter = host.sysctls.get(`net.ipv4.conf.${link.ifname}.rp_filter`);
  return [
    `${link.ifname}, ifindex ${link.ifindex}, ${linkState(link)}, MTU ${link.mtu}${link.kind === undefined ? '' : `, ${link.kind}`}`,
    ...(link.address === undefined ? [] : [`MAC ${link.address}`]),
    ...(link.group === 0 ? [] : [`link group ${link.group}`]),
    ...(rpFilter === undefined ? [] : [`rp_filter ${rpFilter}`]),
    ...(link.ifalias === undefined || link.ifalias === '' ? [] : [`alias ${link.ifalias}`]),
    ...fastPathRows(link, host),
    ...addresses,
  ];
}

function fastPathRows({ ifindex, ifname }: LinkMessage, { traffic, nft }: NodeFacts['host']): readonly string[] {
  if (ifKnown(nft)?.flowLinks?.includes(ifname) === true) return ['fast path: in the flowtable'];
  const filters = (ifKnown(traffic.filters) ?? []).flatMap((filter) => flowFilterOf(filter) ?? []);
  const programs = filters.filter((filter) => filter.ifindex === ifindex);
  if (programs.length === 0) return [];
  return [`fast path: ${programs.map(({ program, direction }) => `${program} at the ${direction}`).join(', ')}`];
}

function leaseFact(view: ModelPod): GraphFact {
  const { pod, ips } = view;
  if (pod.lease.kind === 'unknown') {
    return { title: 'Addresses', rows: [...ips, `lease: not known, ${pod.lease.why}`] };
  }
  const { eniId, state, network, podUid, netns, addresses } = pod.lease.value;
  return {
    title: 'Addresses',
    rows: [
      ...addresses.map(({ ip }) => `${ip} of ${eniId}`),
      `lease ${state}, network ${network}`,
      `attachment ${pod.key}`,
      ...(podUid === '' ? [] : [`uid ${podUid}`]),
      `namespace ${netns}`,
    ],
  };
}

function insideFact({ pod }: ModelPod): GraphFact {
  if (pod.inside.kind === 'unknown') return { title: 'Inside the Pod', rows: [`not read: ${pod.inside.why}`] };
  const { links, addresses, routes, neighs } = pod.inside.value;
  const nameOf = nameIn(links);
  return {
    title: 'Inside the Pod',
    rows: [
      ...links
        .filter(({ ifindex }) => ifindex !== 1)
        .map((link) => `${link.ifname}, ${linkState(link)}, MTU ${link.mtu}, MAC ${link.address ?? 'none'}`),
      ...addresses
        .filter(({ ifindex, scope }) => ifindex !== 1 && scope === RT_SCOPE_UNIVERSE)
        .map((message) => `${ownPrefix(message)} on ${nameOf(message.ifindex)}`),
      ...routes.filter(({ table }) => table === TABLE_MAIN).map((route) => routeLine(route, nameOf)),
      ...neighs
        .filter(({ state }) => state === NUD_PERMANENT)
        .map(({ dst, lladdr }) => `neighbour ${dst} is ${lladdr ?? 'unknown'}`),
    ],
  };
}

/** Returns the routes to the Pod on the host. */
function hostFacts({ ips, hostLink }: ModelPod, { host }: NodeFacts): readonly GraphFact[] {
  const nameOf = nameIn(host.links);
  const prefixes = new Set(ips.map(hostPrefix));
  const routes = host.routes.filter(
    ({ dst, oif, table }) =>
      table !== RT_TABLE_LOCAL &&
      dst !== undefined &&
      (prefixes.has(dst) || (oif !== undefined && oif === hostLink?.ifindex)),
  );
  const rows = routes
    .filter(({ dst }) => dst?.startsWith('fe80:') !== true && dst?.startsWith('ff00:') !== true)
    .map((route) => `${routeLine(route, nameOf)} (table ${host.tableNames.get(route.table) ?? route.table})`);
  return [{ title: 'Routes to it', rows }];
}

function nameIn(links: NetnsFacts['links']): (ifindex: number) => string {
  const names = new Map(links.map(({ ifindex, ifname }) => [ifindex, ifname]));
  return (ifindex) => names.get(ifindex) ?? `#${ifindex}`;
}
