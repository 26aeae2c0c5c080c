import type { CniFailure } from '../api/cni-failure.ts';
import type { Lease } from '../journal/lease.ts';
import type { OperationKind } from './operation-log.ts';

/** One recorded operation: references to values that exist anyway, and functions that render it. */
export type RecordedEntry = {
  readonly kind: OperationKind | 'repair';
  readonly containerId: string;
  readonly ifName: string;
  /** When it began, wall clock milliseconds. */
  readonly atMs: number;
  readonly durationMs: number;
  readonly steps: readonly RecordedStepEntry[];
  readonly lease?: Lease | undefined;
  readonly failure?: CniFailure | undefined;
  readonly differences?: readonly string[];
  /** The cause of a repair. */
  readonly cause?: string;
  /** How often the same happened just before it: a failure in the same way, or a repair of the node for the same cause. */
  readonly repeats?: number;
  /** Each renders command lines of changes to the kernel. */
  readonly kernel: readonly (() => readonly string[])[];
};

/** Duration of a step, milliseconds. */
export type RecordedStepEntry = { readonly name: string; readonly ms: number };

/** Limits of the recorder. */
export type RecorderLimits = {
  readonly pods: number;
  /** Of the node, beside those of Pods. */
  readonly operationsOfNode: number;
  readonly operationsPerPod: number;
  /** In total: 512 Pods with 16 each would take as much memory as everything else in the agent. */
  readonly operations: number;
};

/** Enough for the ADD and the DEL of each; an operation takes about two kilobytes. */
const DEFAULT_RECORDER_LIMITS: RecorderLimits = {
  pods: 512,
  operationsPerPod: 16,
  operations: 1_024,
  operationsOfNode: 256,
};

/** Subject of repairs that concern no Pod: ENIs, and what serves the whole node. */
const NODE_SUBJECT = 'node';

/**
 * Records the last operations of each Pod, and the last repairs of the node. A failure that repeats in the same way is stored once,
 * with a count; so is a repair of the node that repeats for the same cause. A Pod loses its oldest operations first; at the total
 * limit, the Pod without an operation for longest loses its oldest. So memory is bounded, and Pods that come and go do not push out what
 * happened to the node.
 */
export class FlightRecorder {
  readonly #limits: RecorderLimits;
  /** In the order of the last operation. */
  readonly #pods = new Map<string, RecordedEntry[]>();
  readonly #node: RecordedEntry[] = [];
  #count = 0;
  #dropped = 0;

  constructor(limits: RecorderLimits = DEFAULT_RECORDER_LIMITS) {
    this.#limits = limits;
  }

  /** Number of operations in the recorder. */
  get size(): number {
    return this.#count + this.#node.length;
  }

  /** Number of operations that were dropped at a limit. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds a repair of the node. */
  addOfNode(entry: RecordedEntry): void {
    const previous = this.#node.at(-1);
    const isSame = previous !== undefined && previous.cause === entry.cause && linesOf(previous) === linesOf(entry);
    if (isSame) this.#node.pop();
    this.#node.push(isSame ? { ...entry, repeats: (previous.repeats ?? 0) + 1 } : entry);
    if (this.#node.length <= this.#limits.operationsOfNode) return;
    this.#node.shift();
    this.#dropped++;
  }

  /** Adds an operation of a Pod. */
  add(pod: string, entry: RecordedEntry): void {
    const entries = this.#pods.get(pod) ?? [];
    this.#pods.delete(pod);
    this.#pods.set(pod, entries);
    const previous = entries.at(-1);
    if (previous !== undefined && isSameFailure(previous, entry)) {
      entries[entries.length - 1] = { ...entry, repeats: (previous.repeats ?? 0) + 1 };
      return;
    }
    entries.push(entry);
    this.#count++;
    if (entries.length > this.#limits.operationsPerPod) this.#dropOldestOf(pod, entries);
    while (this.#pods.size > this.#limits.pods || this.#count > this.#limits.operations) this.#dropOldest();
  }

  /** Iterates over the node and the Pods, that with the latest operation first; of each the oldest operation first. */
  *pods(): IterableIterator<{ readonly pod: string; readonly entries: readonly RecordedEntry[] }> {
    if (this.#node.length > 0) yield { pod: NODE_SUBJECT, entries: this.#node };
    for (const [pod, entries] of [...this.#pods].reverse()) yield { pod, entries };
  }

  #dropOldest(): void {
    for (const [pod, entries] of this.#pods) {
      this.#dropOldestOf(pod, entries);
      return;
    }
  }

  #dropOldestOf(pod: string, entries: RecordedEntry[]): void {
    entries.shift();
    this.#count--;
    this.#dropped++;
    if (entries.length === 0) this.#pods.delete(pod);
  }
}

function linesOf({ kernel, failure }: RecordedEntry): string {
  return [...kernel.flatMap((render) => render()), failure?.msg ?? ''].join('\n');
}

function isSameFailure(a: RecordedEntry, b: RecordedEntry): boolean {
  if (a.failure === undefined || b.failure === undefined || a.kind !== b.kind) return false;
  return a.containerId === b.containerId && a.failure.code === b.failure.code && a.failure.msg === b.failure.msg;
}
