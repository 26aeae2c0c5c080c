import type { Operation } from '../../dataplane/operation.ts';
import type { CniFailure } from '../api/cni-failure.ts';
import type { Lease, LeaseKey } from '../journal/lease.ts';

/**
 * Log of the agent's operations, for those who read them later (flight recorder) and those who watch. Cheap: an entry
 * is rendered only when it is read. No method throws.
 */
export type OperationLog = {
  /**
   * Begins an operation of an attachment; the caller holds the attachment's lock. Until its end all calls for the key
   * belong to it.
   */
  begin(key: LeaseKey, operation: OperationStart): void;
  /** Records the lease that was decided, before it is carried out. */
  decided(key: LeaseKey, lease: Lease): void;
  /** Ends a step of the running operation, if there is one. */
  step(key: LeaseKey, name: string): void;
  /** Records changes of the kernel by the operation, as command lines that a person would type. */
  kernelChanged(key: LeaseKey, render: () => readonly string[]): void;
  /** Ends the operation. */
  end(key: LeaseKey, outcome: OperationOutcome): void;
  /** Records a repair pass that changed something, or failed to. */
  repaired(pass: RepairOccurrence): void;
  /** Reports any other occurrence; `render` is called only when someone watches. */
  report(kind: OccurrenceKind, render: () => Occurrence): void;
};

/** Operations on an attachment: by a call, or by garbage collection. */
export type OperationKind = 'add' | 'del' | 'check' | 'gc';

/** Other kinds of occurrences. */
export type OccurrenceKind = 'supply' | 'publish' | 'conflict' | 'fight' | 'status';

/** The beginning of an operation. */
export type OperationStart = {
  readonly kind: OperationKind;
  /** Empty when the runtime gave none. */
  readonly podNamespace: string;
  readonly podName: string;
  /** When its call was received, monotonic; default now. */
  readonly startedMs?: number;
};

/** The outcome of an operation. */
export type OperationOutcome = {
  /** The attachment after the operation, or before it was ended; absent when there is none. */
  readonly lease?: Lease | undefined;
  readonly failure?: CniFailure | undefined;
  /** The differences that a CHECK found. */
  readonly differences?: readonly string[];
};

/** The result of a repair pass. */
export type RepairOccurrence = {
  readonly cause: string;
  readonly durationMs: number;
  readonly done: readonly Operation[];
  readonly failed: readonly { readonly operation: Operation; readonly error: unknown }[];
  /** Attachments that are wired. */
  readonly leases: Iterable<Lease>;
};

/** One occurrence, as text. */
export type Occurrence = {
  /** Id of the ENI that it is about, if any. */
  readonly subject?: string;
  readonly text: string;
  readonly isFailure?: boolean;
  readonly code?: number;
};

/** Drops everything. */
export const NO_OPERATION_LOG: OperationLog = {
  begin: () => {},
  decided: () => {},
  step: () => {},
  kernelChanged: () => {},
  end: () => {},
  repaired: () => {},
  report: () => {},
};
