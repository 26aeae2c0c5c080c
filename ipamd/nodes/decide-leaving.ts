import type { Leaving } from '../decide/node-view.ts';
import type { Presence } from './decide-presence.ts';

/** What the teardown of a node depends on. */
export type LeavingFacts = {
  /** Of the instance whose ENIs the NodeENIConfig holds. */
  readonly presence: Presence;
  /** The Node is deleted, or another instance has its name now. */
  readonly isNodeAbsent: boolean;
  /** The kubelet of the Node reports that it is ready, and the Node is this instance. Default: false. */
  readonly isNodeReady?: boolean;
  /** Milliseconds since this leader first missed the Node; 0 when it exists. */
  readonly absentForMs: number;
  /** The deletion of the NodeENIConfig was requested. */
  readonly isConfigLeaving: boolean;
  /** The Node is there to stay: a NodeENIConfig that is deleted is made again. Default: true for a Node that exists. */
  readonly isNodeStaying?: boolean;
  /** The Node annotation disable-node-eni is true. */
  readonly isDisabled: boolean;
  /** That the node is gone is not shown well enough: nothing is released because of it. Default: false. */
  readonly isReleaseHeld?: boolean;
  /** Undefined while the Pods are not known. */
  readonly hasLivePods: boolean | undefined;
};

/**
 * Decides how far a node's ENIs are torn down. By force only when nothing can be in use: the instance is deleted or
 * stopped, or the Node has been missing for longer than the grace and none of its Pods is left. A kubelet that reports
 * is more reliable than the cloud, which lists nothing to a key without rights: such a node stays, and is torn down
 * when its kubelet stops reporting. A deleted NodeENIConfig of a Node that stays drains nothing: the object alone is
 * made again.
 */
export function decideLeaving(facts: LeavingFacts, nodeGraceMs: number): Leaving {
  const isInstanceOver = facts.presence === 'gone' || facts.presence === 'stopped';
  const isHeld = facts.isReleaseHeld === true;
  if (isInstanceOver && facts.isNodeReady !== true && !isHeld) return 'force';
  if (facts.isNodeAbsent && !isHeld) {
    const isOver = facts.absentForMs >= nodeGraceMs && facts.hasLivePods === false;
    return isOver ? 'force' : 'drain';
  }
  if (facts.isDisabled) return 'drain';
  const isNodeStaying = facts.isNodeStaying ?? !facts.isNodeAbsent;
  return facts.isConfigLeaving && !isNodeStaying ? 'drain' : 'no';
}

/** What shows that a node is gone, and who allowed the release of what it has. */
export type DepartureFacts = {
  /** No list or watch of the API server has the Node. */
  readonly isNodeAbsent: boolean;
  /** Answer of the API server to a read of that Node since then; undefined: not read, or not answered, lately. */
  readonly isAbsentWhenRead: boolean | undefined;
  /** A Node of the name exists, and another instance is behind it. */
  readonly isReplaced: boolean;
  /** The kubelet of the Node reports that it is ready. */
  readonly isNodeReady: boolean;
  /** Of the instance whose ENIs the NodeENIConfig holds. */
  readonly presence: Presence;
  /** The cloud's descriptions lack the instance, twice in a row. */
  readonly isInstanceUnlisted: boolean;
  /** The cloud was not asked for the instance yet, or lacked it once: another description decides. */
  readonly isDescriptionDue: boolean;
  /** ipamd began the release within its share. */
  readonly isBegun: boolean;
  /** A person confirmed that the node is gone. */
  readonly isConfirmed: boolean;
  /** The API server lists at least one Node. */
  readonly hasNodes: boolean;
};

/**
 * Weight of the evidence that a node is gone.
 * - `none`: it is there.
 * - `pending`: the Node does not exist, and the cloud has still to say what became of the instance.
 * - `contradicted`: the API server's lists lack the Node, and a read finds it or was not answered.
 * - `one-source`: the API server alone, or the cloud alone, lacks the node; or the cloud lacks it and there is no Node at all. A broken server
 *   shows this of all nodes.
 * - `enough`: what the node has may be released.
 */
export type DepartureEvidence = 'none' | 'pending' | 'contradicted' | 'one-source' | 'enough';

/**
 * Weighs whether a node is gone. A missing object is no proof by itself: an API server that lost its Nodes, or a cloud
 * key without rights, lists nothing. Two sources that agree are enough while there are Nodes at all, and so is a state that the cloud describes, or
 * the word of a person.
 */
export function weighDeparture(facts: DepartureFacts): DepartureEvidence {
  if (facts.isReplaced) return 'enough';
  // An API server that lost all Nodes after a release began has lost this one too.
  const isAllowed = facts.isConfirmed || (facts.isBegun && facts.hasNodes);
  const isInstanceOver = facts.presence === 'gone' || facts.presence === 'stopped';
  if (!facts.isNodeAbsent) {
    if (!isInstanceOver || facts.isNodeReady) return 'none';
    return facts.isInstanceUnlisted && !isAllowed ? 'one-source' : 'enough';
  }
  if (facts.isAbsentWhenRead !== true) return 'contradicted';
  if (isAllowed) return 'enough';
  // Both sources list nothing at all: they are broken, or ask the wrong cluster and the wrong account.
  if (facts.isInstanceUnlisted && !facts.hasNodes) return 'one-source';
  if (isInstanceOver) return 'enough';
  return facts.isDescriptionDue ? 'pending' : 'one-source';
}
