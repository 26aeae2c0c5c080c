import type { JournalContent } from '../../agent/journal/journal-content.ts';
import { type Lease, type LeaseKey, leaseKey } from '../../agent/journal/lease.ts';
import { bridgePodNetworkOf, exclusivePodNetworkOf, podNetworkOf } from '../../agent/journal/pod-network.ts';
import { withoutTakenOver } from '../../agent/journal/taken-over.ts';
import { type HostState, mergeHostState, type PodState } from '../../dataplane/desired.ts';
import { locateBridge } from '../../dataplane/locate-bridge.ts';
import type { EniNetwork, NodeNetwork, PodNetwork, RuleMode } from '../../dataplane/network.ts';
import { DEFAULT_ENI_MARK_MASK, PRIORITY } from '../../dataplane/numbers.ts';
import { planBridge } from '../../dataplane/plan-bridge.ts';
import { planEni } from '../../dataplane/plan-eni.ts';
import { planHost } from '../../dataplane/plan-host.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { planPod } from '../../dataplane/plan-pod.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { ipForward, sysctlName } from '../../sysctl/sysctl-key.ts';
import { ifKnown } from '../node/known.ts';
import type { AgentFacts, NodeFacts } from '../node/node-facts.ts';
import { enisOfJournal, matchRecordedEnis } from './match-recorded-enis.ts';
import { unrecordedBridge } from './unrecorded-bridge.ts';

/** A part of the node's state that is not compared, because its desired value is not known. */
export type Unjudged = { readonly what: string; readonly why: string; readonly next: string };

/** Desired state of the node, planned from the agent's journal and node record. */
export type DesiredNode = {
  readonly host: HostState;
  readonly ruleMode: RuleMode;
  /** Desired state in each Pod's network namespace, of Pods whose interface index is known. */
  readonly pods: ReadonlyMap<LeaseKey, PodState>;
  /** Leases that the plan contains, as input of the data plane. */
  readonly networks: ReadonlyMap<LeaseKey, PodNetwork>;
  /** ENIs that the plan contains, with their present links. */
  readonly enis: readonly EniNetwork[];
  /** Active leases that cannot be planned: the host link is missing, or the ENI is not in the plan. */
  readonly unplanned: readonly {
    readonly key: LeaseKey;
    readonly lease: Lease;
    readonly cause: 'no-link' | 'no-eni';
  }[];
  /** Addresses of leases that an ADD or DEL is changing. Kernel objects of these leases belong to that ADD or DEL. */
  readonly inTransit: ReadonlySet<string>;
  readonly unjudged: readonly Unjudged[];
  /** False when parts of the plan are missing. An object may then not be deleted because the plan lacks it. */
  readonly isComplete: boolean;
};

/** Plans the node as `desiredOf`, with the present interface indexes in its Pods. @throws PlanError */
export function desiredOfNode(agent: AgentFacts, { host, pods }: Pick<NodeFacts, 'host' | 'pods'>): DesiredNode {
  const ifindexes = new Map(
    pods.flatMap(({ key, inside, lease }) => {
      const ifName = key.slice(key.indexOf('/') + 1);
      const links = ifKnown(inside)?.links ?? [];
      const hostEnd = ifKnown(lease)?.hostVeth?.ifindex;
      // The path in a lease may lead to another namespace now, of a process with the same id, or even to the node's
      // own. So the interface must have the host veth of the lease as its peer.
      const ifindex = links.find(({ ifname, link }) => ifname === ifName && (hostEnd ?? link) === link)?.ifindex;
      return ifindex === undefined ? [] : [[key, ifindex] as const];
    }),
  );
  return desiredOf(agent, host.links, ifindexes);
}

/**
 * Plans the node from journal and node record, by the rules of the agent's own repair: it plans active leases whose
 * host link exists and whose ENI is in the plan. Without a node record it plans only what the journal alone decides,
 * and `unjudged` lists what is left out.
 * @param links of the host's namespace
 * @param podIfindexes index of each Pod's interface in the Pod, as far as it was found
 * @throws PlanError when no plan can be made from journal and node record
 */
export function desiredOf(
  agent: AgentFacts,
  links: readonly LinkMessage[],
  podIfindexes: ReadonlyMap<LeaseKey, number> = new Map(),
): DesiredNode {
  const { journal } = agent;
  const record = agent.node.kind === 'known' ? agent.node.value : undefined;
  const enis = record === undefined ? enisOfJournal(journal, links) : matchRecordedEnis(record.enis, links);
  const { networks, unplanned } = activePods(journal, links, enis);
  const ruleMode = journal.ruleMode ?? record?.node.ruleMode ?? 'compact';
  const pods = [...networks.values()];
  const recorded = record?.node ?? unrecordedNode(journal, links, pods);
  const { bridge } = recorded;
  const node = {
    ...{ ...recorded, ruleMode },
    ...(bridge && { bridge: { ...bridge, ...locateBridge(links, bridge.name) } }),
  };
  const host = record === undefined ? hostOfJournal(node, enis, pods) : planNode(node, enis, pods);
  return {
    host,
    ruleMode,
    pods: podStates(node, networks, podIfindexes),
    networks,
    enis,
    unplanned,
    inTransit: new Set(
      journal.leases
        .filter(({ state }) => state !== 'active')
        .flatMap(({ addresses }) => addresses.map(({ ip }) => ip)),
    ),
    unjudged: agent.node.kind === 'known' ? unjudgedByOldRecord(unplanned) : unjudgedWithoutRecord(agent.node),
    // Where an ENI has Pods and is in no plan, the node record is older than the journal or was written without supply.
    isComplete: record !== undefined && !unplanned.some(({ cause }) => cause === 'no-eni'),
  };
}

/**
 * Selects leases as the agent's repair does: only active ones. A lease that is not active belongs to the ADD or DEL
 * that changes it.
 */
function activePods(
  journal: JournalContent,
  links: readonly LinkMessage[],
  enis: readonly EniNetwork[],
): Pick<DesiredNode, 'networks' | 'unplanned'> {
  const records = new Map(journal.enis.map((record) => [record.eniId, record]));
  const tables = new Set(enis.map(({ table }) => table));
  const there = new Map(links.map(({ ifindex, ifname }) => [ifindex, ifname]));
  const networks = new Map<LeaseKey, PodNetwork>();
  const unplanned: DesiredNode['unplanned'][number][] = [];
  for (const lease of journal.leases) {
    if (lease.state !== 'active') continue;
    const key = leaseKey(lease);
    const record = records.get(lease.eniId);
    const network =
      lease.plugin === 'direct-eni'
        ? exclusivePodNetworkOf(lease)
        : lease.plugin === 'bridge'
          ? bridgePodNetworkOf(lease)
          : record !== undefined && tables.has(record.table)
            ? podNetworkOf(lease, record)
            : undefined;
    if (network === undefined) {
      unplanned.push({ key, lease, cause: 'no-eni' });
    } else if (lease.plugin !== 'ipam' && !there.has(lease.hostVeth?.ifindex ?? 0)) {
      unplanned.push({ key, lease, cause: 'no-link' });
    } else {
      // The index identifies the link: another program may have renamed it, and its settings go by its name.
      const name = there.get(network.hostVeth.ifindex ?? 0) ?? network.hostVeth.name;
      const pod = withoutTakenOver(journal.supply, key, { ...network, hostVeth: { ...network.hostVeth, name } });
      if (pod !== undefined) networks.set(key, pod);
    }
  }
  return { networks, unplanned };
}

function podStates(
  node: NodeNetwork,
  networks: ReadonlyMap<LeaseKey, PodNetwork>,
  podIfindexes: ReadonlyMap<LeaseKey, number>,
): ReadonlyMap<LeaseKey, PodState> {
  return new Map(
    [...networks].flatMap(([key, pod]) => {
      const ifindex = podIfindexes.get(key);
      // The inside of a Pod with a whole ENI is compared by the agent's CHECK.
      if (ifindex === undefined || (pod.kind !== 'route-eni' && pod.kind !== 'bridge')) return [];
      return [[key, planPod(node, pod, ifindex).pod] as const];
    }),
  );
}

/**
 * Builds the node's settings from the journal. Only fields that the journal decides are valid; the rest are
 * placeholders.
 */
function unrecordedNode(
  journal: JournalContent,
  links: readonly LinkMessage[],
  pods: readonly PodNetwork[],
): NodeNetwork {
  const primaries = (journal.supply?.enis ?? []).flatMap(({ primary }) => primary);
  const bridge = unrecordedBridge(
    links,
    pods.flatMap((pod) => (pod.kind === 'bridge' && pod.wiring === 'bridge' ? [pod.mtu] : [])),
  );
  return {
    ...(bridge && { bridge }),
    ruleMode: journal.ruleMode ?? 'compact',
    eniMarkMask: DEFAULT_ENI_MARK_MASK,
    rpFilterMode: 'loose',
    egress: 'eni',
    primary: { ifindex: 0, ifname: 'unknown', addresses: [] },
    podCidrs: [],
    families: ([4, 6] as const).filter((family) => primaries.some((primary) => primary.family === family)),
    nodePort: false,
    vpcCidrs: [],
    nftables: false,
  };
}

/** Plans the part of the host's state that does not depend on any setting of the agent. */
function hostOfJournal(node: NodeNetwork, enis: readonly EniNetwork[], pods: readonly PodNetwork[]): HostState {
  const host = planHost(node, enis);
  const known = new Set([sysctlName(ipForward())]);
  return mergeHostState(
    { ...host, sysctls: host.sysctls.filter(({ key }) => known.has(sysctlName(key))) },
    ...enis
      .map((eni) => planEni(node, eni))
      .map((eni) => ({
        ...eni,
        rules: eni.rules.filter(({ priority }) => priority !== PRIORITY.eniMark),
        sysctls: eni.sysctls.filter(({ key }) => !key.path.includes('rp_filter')),
      })),
    planBridge(node, pods),
    ...pods.map((pod) => planPod(node, pod).host),
  );
}

function unjudgedByOldRecord(unplanned: DesiredNode['unplanned']): readonly Unjudged[] {
  const lost = unplanned.find(({ cause }) => cause === 'no-eni');
  if (lost === undefined) return [];
  const why = `the node record lacks ${lost.lease.eniId}, which has Pods`;
  return [
    { what: 'objects of ours that are not in the plan', why, next: 'start the agent: it writes the record again' },
  ];
}

function unjudgedWithoutRecord({ why, next }: { readonly why: string; readonly next: string }): readonly Unjudged[] {
  return [
    'nftables table inet tke_eni',
    `rules at priorities ${PRIORITY.podCidr}, ${PRIORITY.nodePort} and ${PRIORITY.eniMark} (marks)`,
    'rp_filter of the ENIs and of the primary interface',
    'objects of ours that are not in the plan',
  ].map((what) => ({ what, why, next }));
}
