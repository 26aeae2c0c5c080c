import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { isKubeError } from '../kube-error.ts';
import type { Lock, StoredLock } from './lock.ts';
import type { LockNotes } from './lock-record.ts';

/** The time during which one process leads. */
export type Leadership = {
  /** Number of the term; increases with each term of any holder. */
  readonly epoch: number;
  /** Monotonic milliseconds. */
  readonly startedMs: number;
  readonly leaseMs: number;
  /** Aborted when the lease may be lost, before another process can lead; also when this process is to end. */
  readonly signal: AbortSignal;
  /** False once the lease may be over, also before `signal` says so; absent where there is no lock. */
  readonly isHeld?: () => boolean;
  /** Notes that the next leader reads; absent where there is no lock. */
  readonly notes?: TermNotes;
};

/** Annotations of the lock: what one leader leaves to the next. Only the holder of the lock can write them. */
export type TermNotes = {
  /** Returns an annotation as it was when the term began. */
  read(name: string): string | undefined;
  /** Writes an annotation with the record of the lock, at once. @throws Error when the term is over before it is stored */
  write(name: string, text: string): Promise<void>;
};

/** An acquired lock, and the time at which the successful write was sent. */
export type WonLock = { readonly stored: StoredLock; readonly sentMs: number };

/** Dependencies of a term. */
type TermDeps = {
  readonly lock: Lock;
  readonly holder: string;
  readonly leaseMs: number;
  /** How long the holder trusts the lease, counted from the moment at which a renewal was sent. */
  readonly renewDeadlineMs: number;
  readonly renewMs: number;
  readonly retryMs: number;
  readonly clock: Clock;
  readonly log: Logger;
};

/**
 * Leads until the lease may be lost ('lost'), or until aborted or `lead` ends by itself ('over'); the latter releases
 * the lock. Returns only after `lead` has ended. @throws whatever `lead` throws, after the release
 */
export async function runTerm(
  deps: TermDeps,
  won: WonLock,
  lead: (term: Leadership) => Promise<void>,
  signal: AbortSignal,
): Promise<'lost' | 'over'> {
  const { clock, log, leaseMs } = deps;
  const epoch = won.stored.record.transitions;
  const ended = new AbortController();
  const lease = new Lease(deps, won, (why) => {
    log.warn('lease lost, leadership ends', { epoch, why });
    ended.abort(new Error(`the lease is lost: ${why}`));
  });
  const onAbort = () => ended.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  log.info('leading', { epoch, holder: deps.holder });
  try {
    const notes: TermNotes = {
      read: (name) => won.stored.object.metadata.annotations?.[name],
      write: (name, text) => lease.note(name, text),
    };
    await lead({
      epoch,
      startedMs: clock.monotonicMs(),
      leaseMs,
      signal: ended.signal,
      isHeld: () => lease.isHeld,
      notes,
    });
  } catch (error) {
    // An error thrown because the term has ended is not a failure.
    if (!ended.signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    await lease.end();
  }
  return lease.isLost && !signal.aborted ? 'lost' : 'over';
}

const NOT_STORED = 'the term is over: the note was not stored';

/** A lease that is renewed until it is lost or ended. */
class Lease {
  readonly #deps: TermDeps;
  readonly #onLost: (why: string) => void;
  readonly #stopped = new AbortController();
  readonly #epoch: number;
  readonly #running: Promise<unknown>;
  #stored: StoredLock;
  #untilMs: number;
  /** Not stored yet, or stored by this process. */
  #notes: LockNotes = {};
  readonly #noted: ChangeSignal;
  /** Who waits until the notes are stored. */
  readonly #writers: PromiseWithResolvers<void>[] = [];
  isLost = false;

  constructor(deps: TermDeps, won: WonLock, onLost: (why: string) => void) {
    this.#deps = deps;
    this.#onLost = onLost;
    this.#stored = won.stored;
    this.#epoch = won.stored.record.transitions;
    this.#untilMs = won.sentMs + deps.renewDeadlineMs;
    this.#noted = new ChangeSignal(deps.clock);
    this.#running = Promise.all([this.#watchTime(), this.#renewLoop()]);
  }

  /** Whether no other process can lead yet. */
  get isHeld(): boolean {
    return !this.#stopped.signal.aborted && this.#deps.clock.monotonicMs() < this.#untilMs;
  }

  /** Stores a note with a renewal that begins at once. @throws Error when the lease is over */
  async note(name: string, text: string): Promise<void> {
    if (this.#stopped.signal.aborted) throw new Error(NOT_STORED);
    this.#notes = { ...this.#notes, [name]: text };
    const writer = Promise.withResolvers<void>();
    this.#writers.push(writer);
    this.#noted.notify();
    await writer.promise;
  }

  /** Stops the renewals and releases the lock if this process still holds it. Never throws. */
  async end(): Promise<void> {
    const wasHeld = !this.isLost;
    this.#stopped.abort();
    await this.#running;
    if (!wasHeld) return;
    const { lock, log } = this.#deps;
    try {
      // The write is guarded: if another process holds the lock after all, nothing is released.
      await lock.write(this.#stored, { ...this.#stored.record, holder: '', leaseSeconds: 1, renewTime: lock.now() });
      log.info('released the lock', { epoch: this.#epoch });
    } catch (error) {
      log.warn('releasing the lock failed, other replicas wait until its lease expires', { epoch: this.#epoch, error });
    }
  }

  #lose(why: string): void {
    if (this.isLost || this.#stopped.signal.aborted) return;
    this.isLost = true;
    this.#stopped.abort();
    this.#onLost(why);
  }

  async #watchTime(): Promise<void> {
    const { clock } = this.#deps;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      const leftMs = this.#untilMs - clock.monotonicMs();
      if (leftMs <= 0) this.#lose('it was not renewed in time');
      else await clock.sleep(leftMs, signal).catch(() => {});
    }
  }

  async #renewLoop(): Promise<void> {
    const { renewMs, retryMs, log } = this.#deps;
    const { signal } = this.#stopped;
    let waitMs = renewMs;
    let isSure = true;
    while (!signal.aborted) {
      // A note that came during the renewal was not stored with it.
      if (this.#writers.length === 0 || !isSure) await this.#noted.wait(waitMs, signal);
      if (signal.aborted) break;
      try {
        // After a failed renewal the stored state is unknown: the write may have succeeded. Read the lock first.
        if (!isSure && !(await this.#isStillOurs())) break;
        await this.#renew();
        isSure = true;
        waitMs = renewMs;
      } catch (error) {
        isSure = false;
        waitMs = isKubeError(error, 'CONFLICT') ? 0 : retryMs;
        log.warn('renewing the lease failed', { epoch: this.#epoch, error });
      }
    }
    for (const { reject } of this.#writers.splice(0)) reject(new Error(NOT_STORED));
  }

  async #isStillOurs(): Promise<boolean> {
    const { lock, holder } = this.#deps;
    const found = await lock.read();
    if (found?.record.holder !== holder || found.record.transitions !== this.#epoch) {
      this.#lose(found === undefined ? 'the lock was deleted' : `${found.record.holder || 'nobody'} has the lock`);
      return false;
    }
    this.#stored = found;
    return true;
  }

  async #renew(): Promise<void> {
    const { lock, clock, renewDeadlineMs } = this.#deps;
    const sentMs = clock.monotonicMs();
    const writers = [...this.#writers];
    const record = { ...this.#stored.record, renewTime: lock.now() };
    const stored = await lock.write(this.#stored, record, this.#notes);
    this.#stored = stored;
    for (const { resolve } of this.#writers.splice(0, writers.length)) resolve();
    this.#untilMs = sentMs + renewDeadlineMs;
  }
}
