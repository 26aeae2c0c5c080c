import type { SupplyEni } from '../../agent/journal/supply.ts';
import { familyOf } from '../../dataplane/ip-prefix.ts';
import type { RuleMode } from '../../dataplane/network.ts';
import {
  DEFAULT_ENI_MARK_MASK,
  NODEPORT_MARK,
  RTPROT_TKE_ENI,
  TABLE_CONNECTED,
  TABLE_MAIN,
  TABLE_POD_ROUTES,
  TABLE_PODLESS,
} from '../../dataplane/numbers.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import { RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { type EniFacts, findEnis } from '../node/find-enis.ts';
import { joinPods, type NodePod } from '../node/join-pods.ts';
import { ifKnown } from '../node/known.ts';
import type { NodeFacts } from '../node/node-facts.ts';

/** An ENI with its link and its entry in the supply. */
export type EniOutline = EniFacts & {
  /** Name in messages: 'ENI eni-abc (eth1)'. */
  readonly title: string;
  readonly supplied: SupplyEni | undefined;
};

/** Summary of the node that most checks use. */
export type Outline = {
  /** Link of the node's own default route. */
  readonly primary: LinkMessage | undefined;
  readonly enis: readonly EniOutline[];
  /** Their titles are those of messages: 'Pod default/web-0'. */
  readonly pods: readonly NodePod[];
  /** Address families that Pods have or can get. */
  readonly families: ReadonlySet<4 | 6>;
  /** Undefined where no record of the agent says it. */
  readonly ruleMode: RuleMode | undefined;
  /** Bits of the packet mark that we use. */
  readonly markBits: number;
  /** Routing tables that belong to us alone. */
  readonly tables: ReadonlySet<number>;
  nameOf(ifindex: number): string;
};

/** Builds the summary of the node for the checks. */
export function buildOutline(node: NodeFacts): Outline {
  const { host } = node;
  const journal = ifKnown(node.agent)?.journal;
  const links = new Map(host.links.map((link) => [link.ifindex, link]));
  const enis = findEnis(host, node.agent).map((eni) => ({
    ...eni,
    title: `ENI ${eni.eniId ?? `of table ${eni.table}`}${eni.ifname === undefined ? '' : ` (${eni.ifname})`}`,
    supplied: journal?.supply?.enis.find(({ eniId }) => eniId === eni.eniId),
  }));
  const pods = joinPods(node).map((pod) => ({ ...pod, title: `Pod ${pod.title}` }));
  const supplied = journal?.supply?.enis.flatMap(({ primary, addresses }) => [...primary, ...addresses]) ?? [];
  const addresses = [...supplied.map(({ ip }) => ip), ...pods.flatMap(({ ips }) => ips)];
  return {
    primary: links.get(primaryIfindex(node, new Set(enis.map(({ ifindex }) => ifindex))) ?? 0),
    enis,
    pods,
    families: new Set(addresses.map(familyOf)),
    ruleMode: ruleModeOf(node),
    markBits: (markMask(node) | NODEPORT_MARK) >>> 0,
    tables: new Set([TABLE_POD_ROUTES, TABLE_PODLESS, TABLE_CONNECTED, ...enis.map(({ table }) => table)]),
    nameOf: (ifindex) => links.get(ifindex)?.ifname ?? `if${ifindex}`,
  };
}

/**
 * Returns the index of the primary interface: as the agent recorded it, else of the default route with the lowest
 * metric that does not leave by an ENI.
 */
function primaryIfindex(node: NodeFacts, enis: ReadonlySet<number | undefined>): number | undefined {
  const recorded = ifKnown(ifKnown(node.agent)?.node ?? { kind: 'unknown', why: '', next: '' })?.node.primary.ifname;
  const named = node.host.links.find(({ ifname }) => ifname === recorded);
  if (named !== undefined) return named.ifindex;
  const [best] = defaultRoutes(node)
    .filter(({ oif }) => !enis.has(oif))
    .toSorted((a, b) => a.family - b.family || (a.priority ?? 0) - (b.priority ?? 0));
  return best?.oif;
}

/** Returns the default routes of the main table that have an outgoing interface, both families. */
export function defaultRoutes({ host }: Pick<NodeFacts, 'host'>): readonly RouteMessage[] {
  return host.routes.filter(
    ({ table, dst, oif, type }) =>
      table === TABLE_MAIN && dst === undefined && oif !== undefined && type === RTN_UNICAST,
  );
}

function ruleModeOf({ agent }: Pick<NodeFacts, 'agent'>): RuleMode | undefined {
  const facts = ifKnown(agent);
  const recorded = facts === undefined ? undefined : ifKnown(facts.node);
  return recorded?.node.ruleMode ?? facts?.journal.ruleMode;
}

function markMask({ agent, host }: NodeFacts): number {
  const facts = ifKnown(agent);
  const recordedNode = facts === undefined ? undefined : ifKnown(facts.node)?.node;
  const inRules = host.rules.find(
    ({ protocol, fwmask }) => protocol === RTPROT_TKE_ENI && fwmask !== undefined && fwmask !== NODEPORT_MARK,
  );
  // Rules of the mode per-pod match no mark of an ENI.
  return ruleModeOf({ agent }) === 'per-pod'
    ? 0
    : (recordedNode?.eniMarkMask ?? inRules?.fwmask ?? DEFAULT_ENI_MARK_MASK);
}
