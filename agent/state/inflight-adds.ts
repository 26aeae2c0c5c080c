import type { LeaseKey } from '../journal/lease.ts';

type Add = { readonly receivedMs: number; readonly ended: AbortController };

/**
 * Lets a DEL end the ADDs that came before it. A runtime that sends a DEL has given up on them. If the DEL waited for
 * the key's lock behind an ADD that waits for an address, it would run into its deadline, and the ADD would then answer
 * with a network that the DEL removes. A key takes memory only while it has ADDs.
 */
export class InflightAdds {
  readonly #adds = new Map<LeaseKey, Set<Add>>();

  /** Runs `work` with a signal that aborts when `signal` does, or when a later DEL cancels the ADDs of `key`. */
  async run<T>(
    key: LeaseKey,
    { receivedMs, signal }: { readonly receivedMs: number; readonly signal: AbortSignal },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const add: Add = { receivedMs, ended: new AbortController() };
    const ofKey = this.#adds.get(key) ?? new Set();
    this.#adds.set(key, ofKey.add(add));
    try {
      return await work(AbortSignal.any([signal, add.ended.signal]));
    } finally {
      ofKey.delete(add);
      if (ofKey.size === 0 && this.#adds.get(key) === ofKey) this.#adds.delete(key);
    }
  }

  /** Aborts the ADDs of `key` that had been received at `untilMs`. */
  cancel(key: LeaseKey, untilMs: number, reason: string): void {
    for (const { receivedMs, ended } of this.#adds.get(key) ?? []) if (receivedMs <= untilMs) ended.abort(reason);
  }
}
