import type { KubeObject } from '../../kube/kube-client.ts';
import type { IntentOutcome } from '../nec/decision.ts';

/** A call that this process makes or made for an intent, until its outcome is in the object. */
export type RunningCall = {
  readonly startedMs: number;
  /** Set once it ended. */
  outcome: IntentOutcome | undefined;
  /** Resolves when it ended; never rejects. */
  readonly ended: Promise<void>;
};

/** What this process knows of one node and the object does not say. Lost with the process, and nothing hangs on it. */
export type NodeMemory = {
  /** The answer to the last write: the cache may not have it yet. */
  written: KubeObject | undefined;
  /** True when nobody knows whether the last write happened: read the API, not the cache. */
  mustRead: boolean;
  /** By intent id. */
  readonly calls: Map<string, RunningCall>;
  /** When this leader first saw an intent, by its id; monotonic milliseconds. */
  readonly intentSeenMs: Map<string, number>;
  /** Since when an ENI has been Attaching, by its id; monotonic milliseconds. */
  readonly attachingSinceMs: Map<string, number>;
  /** Why the cloud should be described before anything else is decided. */
  describeWhy: string | undefined;
  /** Differences between object and cloud that one look showed, and when: acted upon when a later look shows them too. */
  driftSeenMs: Map<string, number>;
  /** The reason that people were last told. */
  toldReason: string | undefined;
};

/** What this process knows of its nodes; begin anew with each term of leadership. */
export class NodeMemoryBook {
  #nodes = new Map<string, NodeMemory>();

  /** The memory of a node; empty for one that was never looked at. */
  of(name: string): NodeMemory {
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const memory: NodeMemory = {
      written: undefined,
      mustRead: false,
      calls: new Map(),
      intentSeenMs: new Map(),
      attachingSinceMs: new Map(),
      describeWhy: undefined,
      driftSeenMs: new Map(),
      toldReason: undefined,
    };
    this.#nodes.set(name, memory);
    return memory;
  }

  /** Has a node's next turn ask the cloud what it holds for it, and mend the object where it differs. */
  askDescribe(name: string, why: string): void {
    this.of(name).describeWhy = why;
  }

  /** Forgets a node whose object is gone. */
  forget(name: string): void {
    this.#nodes.delete(name);
  }
}
