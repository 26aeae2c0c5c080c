import type { ObservedHost } from '../../dataplane/observed.ts';
import type { DesiredNode, Unjudged } from '../desired/desired-of.ts';
import { findingKey } from '../finding.ts';
import type { AgentFacts, NodeFacts } from '../node/node-facts.ts';
import type { Change } from './change.ts';
import type { Difference, NodeDifferences } from './difference.ts';
import { findForeignDifferences } from './find-foreign-differences.ts';
import { findHostDifferences, hostOperations } from './find-host-differences.ts';
import { findEniDifferences, findLinkDifferences, type LostPeer } from './find-link-differences.ts';
import { namesOf } from './find-names.ts';
import { findPodDifferences, type PodSight } from './find-pod-differences.ts';
import { renderChange } from './render-change.ts';

/** Desired and observed state of a node at one moment. */
export type NodeSight = {
  readonly agent: AgentFacts;
  readonly facts: NodeFacts;
  readonly desired: DesiredNode;
  readonly host: ObservedHost;
  readonly pods: readonly PodSight[];
  /** Peers of host veths that have our alias and no lease, by the ifindex of the host veth. */
  readonly peers: ReadonlyMap<number, LostPeer>;
  /** Keys of leases without an existing network namespace. */
  readonly deadSandboxes: ReadonlySet<string>;
  /** Parts that could not be read. */
  readonly unseen: readonly Unjudged[];
  /**
   * The read before this one, for a node that changed during every read. A difference that only one of the two shows is
   * transient.
   */
  readonly earlier?: NodeSight;
};

/**
 * Compares the desired with the observed state of a node: the host's namespace, each Pod's namespace, links and
 * addresses.
 */
export function diffNode(sight: NodeSight): NodeDifferences {
  const found = diffOnce(sight);
  return sight.earlier === undefined ? found : inBoth(found, diffOnce(sight.earlier));
}

function inBoth(found: NodeDifferences, earlier: NodeDifferences): NodeDifferences {
  const told = new Set(earlier.differences.map(findingKey));
  const lines = new Set(earlier.changes.map(renderChange));
  return {
    ...found,
    differences: found.differences.filter((difference) => told.has(findingKey(difference))),
    changes: found.changes.filter((change) => lines.has(renderChange(change))),
  };
}

function diffOnce(sight: NodeSight): NodeDifferences {
  const { agent, facts, desired } = sight;
  const names = namesOf(agent, desired);
  const pods = sight.pods.flatMap((pod) => findPodDifferences(pod, names));
  const links = findLinkDifferences(sight, names);
  const differences: readonly Difference[] = [
    ...findEniDifferences(desired, agent, facts.host, names),
    ...findHostDifferences(desired, sight.host, names),
    ...findForeignDifferences(desired, facts.host, names),
    ...links,
    ...pods,
  ];
  const changes: readonly Change[] = [
    ...hostOperations(desired, sight.host).map((operation) => ({ kind: 'host' as const, operation })),
    // One operation may repair two differences.
    ...new Map(pods.flatMap((pod) => pod.changes.map((change) => [operationOf(change), change] as const))).values(),
    ...links.flatMap((link) => link.changes),
  ];
  return { differences, changes, unjudged: [...desired.unjudged, ...sight.unseen] };
}

function operationOf(change: Change): unknown {
  return change.kind === 'host' || change.kind === 'pod' ? change.operation : change;
}
