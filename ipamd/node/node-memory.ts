import type { KubeObject } from '../../kube/kube-client.ts';
import type { Baseline } from '../nec/decide-trust.ts';
import type { Judgement } from '../nec/judge-intent.ts';
import { ClaimCalls } from './claim-calls.ts';
import type { AllocatableTold } from './tell-allocatable.ts';

/** A call that this process makes or made for an intent, until its outcome is in the object. */
export type RunningCall = {
  readonly startedMs: number;
  /** Set once it ended; `repeat`: what was found is that it is to be sent again. */
  outcome: Judgement | undefined;
  /** Resolves when it ended; never rejects. */
  readonly ended: Promise<void>;
};

/** What this process knows of one node and the object does not say. Lost with the process, and nothing hangs on it. */
export type NodeMemory = {
  /** The answer to the last write: the cache may not have it yet. */
  written: KubeObject | undefined;
  /** True when nobody knows whether the last write happened: read the API, not the cache. */
  mustRead: boolean;
  /** True while a turn of the node runs: it sees by itself when a call ends. */
  isTurning: boolean;
  /** By intent id. */
  readonly calls: Map<string, RunningCall>;
  /** When this leader first saw an intent, by its id; monotonic milliseconds. */
  readonly intentSeenMs: Map<string, number>;
  /** When an own call ended without anybody knowing how, by intent id. */
  readonly unclearMs: Map<string, number>;
  /** Since when an ENI has been Attaching, by its id; monotonic milliseconds. */
  readonly attachingSinceMs: Map<string, number>;
  /** Why the cloud is to be described, and not before when; monotonic milliseconds. */
  describe: { readonly why: string; readonly notBeforeMs: number } | undefined;
  /** When the status was last made anew because nothing could be read from it. */
  rebuiltMs: number | undefined;
  /** Differences between object and cloud that one look showed, and when: acted upon when a later look shows them too. */
  readonly driftSeenMs: Map<string, number>;
  /** What the object said when it was first seen since the last list; undefined: to be taken from the next look. */
  baseline: Baseline | undefined;
  /** What people were last told to be wrong. */
  told: string | undefined;
  /** The last write that was made for the number of addresses that the node can have, and for nothing else. */
  allocatableTold: AllocatableTold | undefined;
};

/** What this process knows of its nodes; begin anew with each term of leadership. */
export class NodeMemoryBook {
  #nodes = new Map<string, NodeMemory>();
  /** Calls for kept addresses, of all nodes. */
  readonly claimCalls = new ClaimCalls();

  /** The memory of a node; empty for one that was never looked at. */
  of(name: string): NodeMemory {
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const memory: NodeMemory = {
      written: undefined,
      mustRead: false,
      isTurning: false,
      calls: new Map(),
      intentSeenMs: new Map(),
      unclearMs: new Map(),
      attachingSinceMs: new Map(),
      describe: undefined,
      rebuiltMs: undefined,
      driftSeenMs: new Map(),
      baseline: undefined,
      told: undefined,
      allocatableTold: undefined,
    };
    this.#nodes.set(name, memory);
    return memory;
  }

  /** Has a node's next turn ask the cloud what it holds for it, and mend the object where it differs. */
  askDescribe(name: string, why: string): void {
    this.of(name).describe = { why, notBeforeMs: 0 };
  }

  /** Forgets a node whose object is gone. */
  forget(name: string): void {
    this.#nodes.delete(name);
    this.claimCalls.forget(name);
  }
}
