import type { CniFailure } from '../cni-failure.ts';
import type { Lease } from '../journal/lease.ts';
import type { OperationKind } from './diary.ts';

/** One operation as it is kept: references to what was there anyway, and what renders it. */
export type RecordedEntry = {
  readonly kind: OperationKind | 'repair';
  readonly containerId: string;
  readonly ifName: string;
  /** When it began, wall clock. */
  readonly atMs: number;
  readonly durationMs: number;
  readonly steps: readonly RecordedStepEntry[];
  readonly lease?: Lease | undefined;
  readonly failure?: CniFailure | undefined;
  readonly differences?: readonly string[];
  /** What called for a repair. */
  readonly cause?: string;
  /** How often the same failed before it, without anything else in between. */
  readonly repeats?: number;
  /** Each renders lines of what was done to the kernel. */
  readonly kernel: readonly (() => readonly string[])[];
};

/** How long a step took, milliseconds. */
export type RecordedStepEntry = { readonly name: string; readonly ms: number };

/** How much is kept. */
export type RecorderLimits = {
  readonly pods: number;
  readonly operationsPerPod: number;
  /** In all: 512 Pods of 16 each would be as much as everything else that the agent keeps. */
  readonly operations: number;
};

/** Room for the ADD and the DEL of each; an operation takes about two kilobytes. */
export const DEFAULT_RECORDER_LIMITS: RecorderLimits = { pods: 512, operationsPerPod: 16, operations: 1_024 };

/**
 * Keeps the last operations of each Pod. What fails again and again in the same way is kept once, and counted. Of a Pod the oldest go first; when there is no room, the Pod to which nothing
 * has happened for longest loses its oldest. Memory is bounded whatever comes.
 */
export class FlightRecorder {
  readonly #limits: RecorderLimits;
  /** In the order of the last operation. */
  readonly #pods = new Map<string, RecordedEntry[]>();
  #count = 0;
  #forgotten = 0;

  constructor(limits: RecorderLimits = DEFAULT_RECORDER_LIMITS) {
    this.#limits = limits;
  }

  /** Number of operations that are kept. */
  get size(): number {
    return this.#count;
  }

  /** Number of operations that were dropped to make room. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** Keeps one more operation of a Pod. */
  add(pod: string, entry: RecordedEntry): void {
    const entries = this.#pods.get(pod) ?? [];
    this.#pods.delete(pod);
    this.#pods.set(pod, entries);
    const last = entries.at(-1);
    if (last !== undefined && isSameFailure(last, entry)) {
      entries[entries.length - 1] = { ...entry, repeats: (last.repeats ?? 0) + 1 };
      return;
    }
    entries.push(entry);
    this.#count++;
    if (entries.length > this.#limits.operationsPerPod) this.#dropOldestOf(pod, entries);
    while (this.#pods.size > this.#limits.pods || this.#count > this.#limits.operations) this.#dropOldest();
  }

  /** What is kept, the Pod that something happened to last first; of each the oldest operation first. */
  *pods(): IterableIterator<{ readonly pod: string; readonly entries: readonly RecordedEntry[] }> {
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
    this.#forgotten++;
    if (entries.length === 0) this.#pods.delete(pod);
  }
}

function isSameFailure(a: RecordedEntry, b: RecordedEntry): boolean {
  if (a.failure === undefined || b.failure === undefined || a.kind !== b.kind) return false;
  return a.containerId === b.containerId && a.failure.code === b.failure.code && a.failure.msg === b.failure.msg;
}
