import type { Clock } from '../../runtime/clock.ts';
import { timerOn } from '../../runtime/clock-timers.ts';
import type { KubeClient, KubeObject } from '../kube-client.ts';
import type { ObservedLock } from './decide-candidacy.ts';
import {
  LOCK_TYPES,
  type LockNotes,
  type LockRecord,
  type LockRef,
  lockTime,
  readLockRecord,
  writeLockRecord,
} from './lock-record.ts';

/** A lock as it is stored, with the object that a guarded write needs. */
export type StoredLock = NonNullable<ObservedLock> & { readonly object: KubeObject };

/** A lock in the API server. It is read and written by its name only, never listed or watched. */
export type Lock = {
  /** Returns undefined when the lock does not exist. */
  read(): Promise<StoredLock | undefined>;
  /**
   * Writes on condition that the lock is unchanged since `before` was read. @throws KubeError CONFLICT, ALREADY_EXISTS
   */
  write(before: StoredLock | undefined, record: LockRecord, notes?: LockNotes): Promise<StoredLock>;
  /** Renders the present time in the format of the lock's kind. */
  now(): string;
};

/** Dependencies of a lock. */
type LockDeps = { readonly client: KubeClient; readonly clock: Clock; readonly attemptMs: number };

/** Opens a lock. An attempt that takes longer than `attemptMs` is aborted, so that it does not delay the next one. */
export function openLock({ client, clock, attemptMs }: LockDeps, ref: LockRef): Lock {
  const type = LOCK_TYPES[ref.kind];
  // Use the urgent client: a renewal must not wait in the queue behind the calls of the leader's work.
  const calls = client.urgent ?? client;
  const stored = (object: KubeObject): StoredLock => ({
    object,
    resourceVersion: object.metadata.resourceVersion ?? '',
    record: readLockRecord(ref.kind, object),
  });
  const limited = <T>(run: (signal: AbortSignal) => Promise<T>) => withLimit(clock, attemptMs, run);
  return {
    read: async () => {
      const object = await limited((signal) => calls.get(type, ref, signal));
      return object === undefined ? undefined : stored(object);
    },
    write: async (before, record, notes) => {
      const desired = writeLockRecord(ref, before?.object, record, notes);
      const write = before === undefined ? calls.create : calls.update;
      return stored(await limited((signal) => write(type, desired, signal)));
    },
    now: () => lockTime(ref.kind, clock.nowMs()),
  };
}

async function withLimit<T>(clock: Clock, ms: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const timeout = new AbortController();
  const timer = timerOn(clock, () => timeout.abort(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await run(timeout.signal);
  } finally {
    timer.cancel();
  }
}
