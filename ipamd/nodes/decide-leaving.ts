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
