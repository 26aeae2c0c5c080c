import { isDeepStrictEqual } from 'node:util';
import type { JournalContent } from '../../agent/journal/journal-content.ts';
import { type Lease, leaseKey } from '../../agent/journal/lease.ts';

/**
 * Joins what a journal held before a look and after it: a lease that came, went or changed meanwhile counts as in transit
 * (pending), so that nothing is told of what the kernel holds of it. Pure.
 */
export function settledJournal(before: JournalContent, after: JournalContent): JournalContent {
  const was = byKey(before.leases);
  const is = byKey(after.leases);
  const keys = new Set([...was.keys(), ...is.keys()]);
  const leases = [...keys].flatMap((key): readonly Lease[] => {
    const lease = is.get(key) ?? was.get(key);
    if (lease === undefined) return [];
    return [isDeepStrictEqual(was.get(key), is.get(key)) ? lease : { ...lease, state: 'pending' }];
  });
  return { ...after, leases };
}

/** Tells whether nothing came or went between two readings, not even something that came and went. Pure. */
export function isSameMoment(before: JournalContent, after: JournalContent): boolean {
  const kept = ({ leases, enis, cooldowns, ruleMode }: JournalContent) => ({ leases, enis, cooldowns, ruleMode });
  return isDeepStrictEqual(kept(before), kept(after));
}

function byKey(leases: readonly Lease[]): ReadonlyMap<string, Lease> {
  return new Map(leases.map((lease) => [leaseKey(lease.containerId, lease.ifName), lease]));
}
