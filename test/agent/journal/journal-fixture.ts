import { openJournal } from '../../../agent/journal/journal.ts';
import type { Cooldown, Journal } from '../../../agent/journal/journal-content.ts';
import { type Lease, leaseKey } from '../../../agent/journal/lease.ts';

/** Time of these tests, since boot. */
export const NOW_MS = 1_000_000;

/** Opens a journal as of a given boot. */
export function open(path: string, bootId = 'boot-1', nowMs = NOW_MS): Journal {
  return openJournal(path, { clock: { bootMs: () => nowMs }, bootId });
}

/** Names the key of a lease. */
export function keyOf(lease: Lease): string {
  return leaseKey(lease);
}

/** Makes the cooldowns that the end of a lease starts. */
export function cooldownsOf(lease: Lease, change: Partial<Cooldown> = {}): readonly Cooldown[] {
  return lease.addresses.map((address) => ({
    ...address,
    freedAtMs: NOW_MS,
    coolUntilMs: NOW_MS + 120_000,
    cooldownMs: 120_000,
    ...change,
  }));
}
