import { familyOf, type Lease } from '../../agent/journal/lease.ts';
import type { SupplyEni } from '../../agent/journal/supply.ts';
import {
  DEFAULT_ENI_MARK_MASK,
  NODEPORT_MARK,
  RTPROT_TKE_ENI,
  TABLE_MAIN,
  TABLE_POD_ROUTES,
} from '../../dataplane/numbers.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import { type EniFacts, findEnis } from '../node/find-enis.ts';
import { podAddresses, podTitle } from '../node/find-pod.ts';
import { ifKnown } from '../node/known.ts';
import type { NodeFacts, PodFacts } from '../node/node-facts.ts';

/** An ENI with its link, and with what the cloud gave it. */
export type EniOutline = EniFacts & {
  /** For people: 'ENI eni-abc (eth1)'. */
  readonly title: string;
  /** Undefined when it is not on this node. */
  readonly link: LinkMessage | undefined;
  readonly supplied: SupplyEni | undefined;
};

/** A Pod interface with its host link. */
export type PodOutline = {
  readonly pod: PodFacts;
  readonly title: string;
  readonly lease: Lease | undefined;
  readonly link: LinkMessage | undefined;
  readonly ips: readonly string[];
};

/** What most checks start from. */
export type Outline = {
  /** Link that the node's own default route leaves by. */
  readonly primary: LinkMessage | undefined;
  readonly enis: readonly EniOutline[];
  readonly pods: readonly PodOutline[];
  /** Families of the addresses that Pods have or can get. */
  readonly families: ReadonlySet<4 | 6>;
  /** Bits of the packet mark that are ours. */
  readonly markBits: number;
  /** Tables whose routes are ours alone. */
  readonly tables: ReadonlySet<number>;
  nameOf(ifindex: number): string;
};

/** Puts together what the checks need of the node. */
export function findOutline(node: NodeFacts): Outline {
  const { host } = node;
  const journal = ifKnown(node.agent)?.journal;
  const links = new Map(host.links.map((link) => [link.ifindex, link]));
  const linkOf = (ifindex: number | undefined) => (ifindex === undefined ? undefined : links.get(ifindex));
  const enis = findEnis(host, node.agent).map((eni) => ({
    ...eni,
    title: `ENI ${eni.eniId ?? `of table ${eni.table}`}${eni.ifname === undefined ? '' : ` (${eni.ifname})`}`,
    link: linkOf(eni.ifindex),
    supplied: journal?.supply?.enis.find(({ eniId }) => eniId === eni.eniId),
  }));
  const pods = node.pods.map((pod) => ({
    pod,
    title: `Pod ${podTitle(pod)}`,
    lease: ifKnown(pod.lease),
    link: linkOf(pod.hostIfindex),
    ips: podAddresses(node, pod),
  }));
  const supplied = journal?.supply?.enis.flatMap(({ primary, addresses }) => [...primary, ...addresses]) ?? [];
  const addresses = [...supplied.map(({ ip }) => ip), ...pods.flatMap(({ ips }) => ips)];
  return {
    primary: linkOf(primaryIfindex(node, new Set(enis.map(({ ifindex }) => ifindex)))),
    enis,
    pods,
    families: new Set(addresses.map(familyOf)),
    markBits: (markMask(node) | NODEPORT_MARK) >>> 0,
    tables: new Set([TABLE_POD_ROUTES, ...enis.map(({ table }) => table)]),
    nameOf: (ifindex) => links.get(ifindex)?.ifname ?? `if${ifindex}`,
  };
}

/** The agent's own word; without it the default route with the lowest metric that leaves by no ENI. */
function primaryIfindex(node: NodeFacts, enis: ReadonlySet<number | undefined>): number | undefined {
  const recorded = ifKnown(ifKnown(node.agent)?.node ?? { kind: 'unknown', why: '', next: '' })?.node.primary.ifname;
  const named = node.host.links.find(({ ifname }) => ifname === recorded);
  if (named !== undefined) return named.ifindex;
  const [best] = defaultRoutes(node)
    .filter(({ oif }) => !enis.has(oif))
    .toSorted((a, b) => a.family - b.family || (a.priority ?? 0) - (b.priority ?? 0));
  return best?.oif;
}

/** Default routes of the main table that lead somewhere, both families. */
export function defaultRoutes({ host }: Pick<NodeFacts, 'host'>): readonly RouteMessage[] {
  return host.routes.filter(
    ({ table, dst, oif, type }) => table === TABLE_MAIN && dst === undefined && oif !== undefined && type === 1,
  );
}

function markMask({ agent, host }: NodeFacts): number {
  const facts = ifKnown(agent);
  const recordedNode = facts === undefined ? undefined : ifKnown(facts.node)?.node;
  const inRules = host.rules.find(
    ({ protocol, fwmask }) => protocol === RTPROT_TKE_ENI && fwmask !== undefined && fwmask !== NODEPORT_MARK,
  );
  // Per-pod rules look at no ENI's mark.
  const mode = recordedNode?.ruleMode ?? facts?.journal.ruleMode;
  return mode === 'per-pod' ? 0 : (recordedNode?.eniMarkMask ?? inRules?.fwmask ?? DEFAULT_ENI_MARK_MASK);
}
