import type { ObservedHost } from '../../dataplane/observed.ts';
import { findingKey } from '../catalogue/finding.ts';
import type { DesiredNode, Unjudged } from '../desired/desired-of.ts';
import { buildNames, type ObjectNames } from '../model/build-names.ts';
import { buildNodeModel, type NodeModel } from '../model/node-model.ts';
import { known } from '../node/known.ts';
import type { AgentFacts, NodeFacts } from '../node/node-facts.ts';
import { type Change, renderChange } from './change.ts';
import { compareForeignObjects } from './compare-foreign-objects.ts';
import { compareHost, hostOperations } from './compare-host.ts';
import { compareEnis, compareLinks, type LostPeer } from './compare-links.ts';
import { comparePod, type PodSnapshot } from './compare-pod.ts';
import { compareSupply } from './compare-supply.ts';
import type { Difference, NodeDifferences } from './difference.ts';

/** Desired and observed state of a node at one moment. */
export type NodeSnapshot = {
  /** What the plan was made of; absent where the kernel's own state was all there was. */
  readonly agent?: AgentFacts;
  readonly facts: NodeFacts;
  readonly desired: DesiredNode;
  readonly host: ObservedHost;
  readonly pods: readonly PodSnapshot[];
  /** Peers of host veths that have our alias and no lease, by the ifindex of the host veth. */
  readonly peers: ReadonlyMap<number, LostPeer>;
  /** Keys of leases without an existing network namespace. */
  readonly deadSandboxes: ReadonlySet<string>;
  /** Parts that could not be read. */
  readonly unread: readonly Unjudged[];
  /**
   * The read before this one, for a node that changed during every read. A difference that only one of the two shows is
   * transient.
   */
  readonly earlier?: NodeSnapshot;
};

/** A snapshot of a node whose agent left a record. */
export type RecordedSnapshot = NodeSnapshot & { readonly agent: AgentFacts };

/**
 * Compares the desired with the observed state of a node: the host's namespace, each Pod's namespace, links and
 * addresses.
 */
export function compareNode(snapshot: NodeSnapshot): NodeDifferences {
  const found = compareOnce(snapshot);
  return snapshot.earlier === undefined ? found : inBothReads(found, compareOnce(snapshot.earlier));
}

function inBothReads(found: NodeDifferences, earlier: NodeDifferences): NodeDifferences {
  const keyOf = (difference: Difference): string => difference.readKey ?? findingKey(difference);
  const earlierKeys = new Set(earlier.differences.map(keyOf));
  const lines = new Set(earlier.changes.map(renderChange));
  return {
    ...found,
    differences: found.differences.filter((difference) => earlierKeys.has(keyOf(difference))),
    changes: found.changes.filter((change) => lines.has(renderChange(change))),
  };
}

function compareOnce(snapshot: NodeSnapshot): NodeDifferences {
  const { facts, desired } = snapshot;
  const model = modelOf(snapshot);
  const names = buildNames(model, desired);
  const pods = snapshot.pods.flatMap((pod) => comparePod(pod, names));
  const links = compareLinks(snapshot, names);
  const differences: readonly Difference[] = [
    ...compareEnis(desired, model.supply, facts.host, names),
    ...compareSupply(model, names),
    ...compareHost(desired, snapshot.host, names),
    ...compareForeignObjects(desired, model, names),
    ...links,
    ...pods,
  ];
  const changes: readonly Change[] = [
    ...hostOperations(desired, snapshot.host).map((operation) => ({ kind: 'host' as const, operation })),
    // One operation may repair two differences.
    ...new Map(pods.flatMap((pod) => pod.changes.map((change) => [operationOf(change), change] as const))).values(),
    ...links.flatMap((link) => link.changes),
  ];
  return { differences, changes, unjudged: [...desired.unjudged, ...snapshot.unread] };
}

/** Returns who owns what on the node of a snapshot. */
export function namesOf(snapshot: NodeSnapshot): ObjectNames {
  return buildNames(modelOf(snapshot), snapshot.desired);
}

function modelOf({ agent, facts }: NodeSnapshot): NodeModel {
  return buildNodeModel(agent === undefined ? facts : { ...facts, agent: known(agent) });
}

function operationOf(change: Change): unknown {
  return change.kind === 'host' || change.kind === 'pod' ? change.operation : change;
}
