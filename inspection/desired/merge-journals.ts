import { isDeepStrictEqual } from 'node:util';
import type { JournalContent } from '../../agent/journal/journal-content.ts';
import { type Lease, leaseKey } from '../../agent/journal/lease.ts';
import type { AgentFacts } from '../node/node-facts.ts';

/**
 * Merges two reads of the journal, before and after the kernel was read. A lease that was added, deleted or changed
 * between them becomes 'pending', so that kernel objects of that lease are not reported.
 */
export function mergeJournals(before: JournalContent, after: JournalContent): JournalContent {
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

/**
 * Returns whether journal and node record did not change between two reads. Cooldowns are compared too: a lease that was
 * added and deleted in between leaves its address in cooldown.
 */
export function isUnchanged(before: AgentFacts, after: AgentFacts): boolean {
  const compared = ({ journal: { leases, enis, cooldowns, ruleMode }, node }: AgentFacts) => {
    return { leases, enis, cooldowns, ruleMode, node };
  };
  return isDeepStrictEqual(compared(before), compared(after));
}

function byKey(leases: readonly Lease[]): ReadonlyMap<string, Lease> {
  return new Map(leases.map((lease) => [leaseKey(lease), lease]));
}
