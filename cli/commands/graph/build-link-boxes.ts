import { TABLE_MAIN } from '../../../dataplane/numbers.ts';
import { eniId, linkId } from '../../../inspection/catalogue/element-id.ts';
import type { EniFacts } from '../../../inspection/node/find-enis.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { ownPrefix } from '../../../netlink/address-message.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { IFF_LOOPBACK } from '../../../netlink/uapi/if-link.ts';
import { RT_SCOPE_UNIVERSE } from '../../../netlink/uapi/rtnetlink.ts';
import { isUp, linkRows, linkState } from './build-pod-boxes.ts';
import { type GraphNode, NODE_GROUP } from './graph.ts';

/** Number of links of other programs that are drawn; of the rest only the number is shown. */
const SHOWN_LINKS = 10;

/** Builds the box of an ENI. */
export function buildEniBox(eni: EniFacts, group: string, facts: NodeFacts): GraphNode {
  const { link } = eni;
  const supply = ifKnown(facts.agent)?.journal.supply?.enis.find((one) => one.eniId === eni.eniId);
  const notes = [
    ...(supply?.draining === true ? ['draining'] : []),
    ...(supply?.attached === false ? ['not attached, says the cloud'] : []),
  ];
  return {
    id: eniId(eni.eniId ?? String(eni.table)),
    kind: 'eni',
    lane: 'links',
    group,
    title: eni.eniId ?? `ENI of table ${eni.table}`,
    lines: [
      link === undefined
        ? 'no such interface here'
        : `${link.ifname} · #${link.ifindex} · ${linkState(link)} · MTU ${link.mtu}`,
      ...(eni.mac === undefined ? [] : [eni.mac]),
      ...eni.addresses,
      ...notes,
    ],
    owner: 'ours',
    state: link === undefined ? 'missing' : isUp(link) ? (notes.length > 0 ? 'warning' : 'ok') : 'broken',
    elements: [
      eniId(eni.eniId ?? String(eni.table)),
      ...(link === undefined ? [] : [linkId(link.ifindex)]),
      ...eni.addresses.map((ip) => `address:${ip}`),
    ],
    facts: [
      { title: 'Interface', rows: link === undefined ? ['not in this namespace'] : linkRows(link, facts) },
      {
        title: 'ENI',
        rows: [
          `table ${eni.table}, link group of its Pods`,
          ...(eni.slot === undefined ? [] : [`slot ${eni.slot}`]),
          ...(supply === undefined ? [] : [`${supply.addresses.length} addresses for Pods`]),
        ],
      },
    ],
    findings: [],
  };
}

/** Builds the boxes of the host's other links: the primary NIC first. The loopback and Pod veths are left out. */
export function buildNicBoxes(facts: NodeFacts, isOurs: (link: LinkMessage) => boolean): readonly GraphNode[] {
  const primary = primaryIfindex(facts);
  const others = facts.host.links
    .filter((link) => (link.flags & IFF_LOOPBACK) === 0 && !isOurs(link))
    .sort((a, b) => Number(b.ifindex === primary) - Number(a.ifindex === primary) || a.ifindex - b.ifindex);
  const boxes = others.slice(0, SHOWN_LINKS).map((link) => nicBox(link, link.ifindex === primary, facts));
  const rest = others.slice(SHOWN_LINKS);
  return rest.length === 0 ? boxes : [...boxes, restBox(rest)];
}

/** Builds the box of the VPC behind an ENI or the primary NIC: the gateways of the default routes in its table. */
export function buildGatewayBox(table: number, group: string, facts: NodeFacts, eni?: EniFacts): GraphNode | undefined {
  const routes = facts.host.routes.filter((route) => route.table === table && route.dst === undefined);
  const gateways = [...new Set(routes.flatMap(({ gateway, via }) => gateway ?? via ?? []))];
  const supply = ifKnown(facts.agent)?.journal.supply?.enis.find((one) => one.eniId === eni?.eniId);
  const planned = supply?.primary.map(({ gateway }) => gateway) ?? [];
  const shown = gateways.length > 0 ? gateways : planned;
  if (shown.length === 0 && eni === undefined) return undefined;
  return {
    id: `gateway~${group}`,
    kind: 'gateway',
    lane: 'vpc',
    group,
    title: 'VPC',
    lines: [
      ...shown.map((gateway) => `gateway ${gateway}`),
      ...(supply?.primary.map(({ subnetCidr }) => `subnet ${subnetCidr}`) ?? []),
    ],
    owner: 'kernel',
    state: 'ok',
    elements: shown.map((gateway) => `cloud:${gateway}`),
    facts: [],
    findings: [],
  };
}

function nicBox(link: LinkMessage, isPrimary: boolean, facts: NodeFacts): GraphNode {
  const addresses = facts.host.addresses
    .filter(({ ifindex, scope }) => ifindex === link.ifindex && scope === RT_SCOPE_UNIVERSE)
    .map(ownPrefix);
  return {
    id: linkId(link.ifindex),
    kind: 'nic',
    lane: 'links',
    group: NODE_GROUP,
    title: isPrimary ? `${link.ifname} (primary)` : link.ifname,
    lines: [`#${link.ifindex} · ${linkState(link)} · MTU ${link.mtu}`, ...addresses.slice(0, 3)],
    owner: 'kernel',
    // A link of another program may be down on purpose; the primary interface of the node may not.
    state: isPrimary && !isUp(link) ? 'broken' : 'ok',
    elements: [linkId(link.ifindex), ...addresses.map((address) => `address:${address.split('/')[0]}`)],
    facts: [{ title: 'Interface', rows: linkRows(link, facts) }],
    findings: [],
  };
}

function restBox(rest: readonly LinkMessage[]): GraphNode {
  return {
    id: 'links:others',
    kind: 'nic',
    lane: 'links',
    group: NODE_GROUP,
    title: `${rest.length} more links`,
    lines: ['of other programs'],
    owner: 'kernel',
    state: 'ok',
    elements: rest.map(({ ifindex }) => linkId(ifindex)),
    facts: [{ title: 'Links', rows: rest.map((link) => `${link.ifname}, ${linkState(link)}`) }],
    findings: [],
  };
}

function primaryIfindex({ host, agent }: NodeFacts): number | undefined {
  const record = ifKnown(agent)?.node;
  const planned = record === undefined ? undefined : ifKnown(record)?.node.primary.ifindex;
  return planned ?? host.routes.find(({ table, dst }) => table === TABLE_MAIN && dst === undefined)?.oif;
}
