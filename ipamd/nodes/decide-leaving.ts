import type { Leaving } from '../nec/node-view.ts';
import type { Presence } from './decide-presence.ts';

/** What a node's leaving depends on. */
export type LeavingFacts = {
  /** Of the instance whose ENIs the NodeENIConfig holds. */
  readonly presence: Presence;
  /** The Node is gone, or another instance has its name now. */
  readonly isNodeGone: boolean;
  /** The Node's kubelet reports that it is ready, and it is this instance's. Default: false. */
  readonly isNodeReady?: boolean;
  /** Milliseconds since this leader first saw the Node gone; 0 when it is not. */
  readonly goneForMs: number;
  /** Somebody asked for the deletion of the NodeENIConfig. */
  readonly isConfigLeaving: boolean;
  /** The Node annotation disable-node-eni is true. */
  readonly isDisabled: boolean;
  /** Undefined while the Pods are not known. */
  readonly hasLivePods: boolean | undefined;
};

/**
 * Decides how far a node's ENIs are given back. By force only when nothing can be in use: the instance is gone or stopped,
 * or the Node is gone for longer than the grace and no Pod of it is left. A kubelet that reports knows better than the
 * cloud, which lists nothing to who may see nothing: its node stays, and goes when it falls silent. Pure.
 */
export function decideLeaving(facts: LeavingFacts, nodeGraceMs: number): Leaving {
  const isInstanceOver = facts.presence === 'gone' || facts.presence === 'stopped';
  if (isInstanceOver && facts.isNodeReady !== true) return 'force';
  if (facts.isNodeGone) {
    const isOver = facts.goneForMs >= nodeGraceMs && facts.hasLivePods === false;
    return isOver ? 'force' : 'drain';
  }
  return facts.isConfigLeaving || facts.isDisabled ? 'drain' : 'no';
}
