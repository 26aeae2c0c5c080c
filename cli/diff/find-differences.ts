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

/** A node as it should be and as it is, at one moment. */
export type NodeSight = {
  readonly agent: AgentFacts;
  readonly facts: NodeFacts;
  readonly desired: DesiredNode;
  readonly host: ObservedHost;
  readonly pods: readonly PodSight[];
  /** By the ifindex of the host veth: of those that bear our alias and have no lease. */
  readonly peers: ReadonlyMap<number, LostPeer>;
  /** Keys of leases whose network namespace is not there. */
  readonly deadSandboxes: ReadonlySet<string>;
  /** What could not be looked at. */
  readonly unseen: readonly Unjudged[];
  /** The look before, of a node that was never quiet: what only one of the two shows came and went. */
  readonly earlier?: NodeSight;
};

/** Compares what is wanted of a node with what is there: the host's namespace, each Pod's inside, links and addresses. Pure. */
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
    // One operation may mend two things.
    ...new Map(pods.flatMap((pod) => pod.changes.map((change) => [operationOf(change), change] as const))).values(),
    ...links.flatMap((link) => link.changes),
  ];
  return { differences, changes, unjudged: [...desired.unjudged, ...sight.unseen] };
}

function operationOf(change: Change): unknown {
  return change.kind === 'host' || change.kind === 'pod' ? change.operation : change;
}
