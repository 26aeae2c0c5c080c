import type { Operation } from '../../dataplane/operation.ts';
import type { CniFailure } from '../cni-failure.ts';
import type { Lease, LeaseKey } from '../journal/lease.ts';

/**
 * Takes down what the agent does, for those who ask later (flight recorder) and those who watch. Cheap: what is told is
 * rendered only when somebody reads it. No method throws.
 */
export type Diary = {
  /** Begins an operation of an attachment, in its turn: until its end all that is told of the key belongs to it. */
  begin(key: LeaseKey, operation: OperationStart): void;
  /** Tells what was decided, before it is done. */
  decided(key: LeaseKey, lease: Lease): void;
  /** Ends a step of the operation that is under way, if one is. */
  step(key: LeaseKey, name: string): void;
  /** Tells what was done to the kernel in it, as lines that a person would type. */
  kernelChanged(key: LeaseKey, render: () => readonly string[]): void;
  /** Ends the operation. */
  end(key: LeaseKey, outcome: OperationOutcome): void;
  /** Tells of a repair pass that changed something, or could not. */
  repaired(pass: RepairSign): void;
  /** Tells of anything else; `render` is called only when somebody watches. */
  tell(kind: SignKind, render: () => Sign): void;
};

/** What is done to an attachment: by a call, or by garbage collection. */
export type OperationKind = 'add' | 'del' | 'check' | 'gc';

/** What else happens. */
export type SignKind = 'supply' | 'publish' | 'conflict' | 'fight' | 'status';

/** The beginning of an operation. */
export type OperationStart = {
  readonly kind: OperationKind;
  /** Empty where the runtime gave none. */
  readonly podNamespace: string;
  readonly podName: string;
  /** When its call came in, monotonic; default now. */
  readonly startedMs?: number;
};

/** How an operation ended. */
export type OperationOutcome = {
  /** The attachment as it is then, or was before; absent when there is none. */
  readonly lease?: Lease | undefined;
  readonly failure?: CniFailure | undefined;
  /** What a CHECK found. */
  readonly differences?: readonly string[];
};

/** What a repair pass did. */
export type RepairSign = {
  readonly cause: string;
  readonly durationMs: number;
  readonly done: readonly Operation[];
  readonly failed: readonly { readonly operation: Operation; readonly error: unknown }[];
  /** Attachments that are wired. */
  readonly leases: Iterable<Lease>;
};

/** One thing that happened, in words. */
export type Sign = {
  /** An ENI, or nothing. */
  readonly subject?: string;
  readonly text: string;
  readonly isFailure?: boolean;
  readonly code?: number;
};

/** Keeps nothing. */
export const NO_DIARY: Diary = {
  begin: () => {},
  decided: () => {},
  step: () => {},
  kernelChanged: () => {},
  end: () => {},
  repaired: () => {},
  tell: () => {},
};
