import type { Conflict } from './conflict.ts';
import { filterKey, type HostState } from './desired.ts';
import { isHostVethName } from './host-veth-name.ts';
import type { ObservedHost } from './observed.ts';
import type { Operation } from './operation.ts';

/** Returns the filters to attach: on links that are there and have no filter of others. */
export function filterAttachments(
  { filters: planned = [] }: HostState,
  { filters: found }: ObservedHost,
  missing: ReadonlySet<number>,
): readonly Operation[] {
  if (found === undefined) return [];
  const foreign = new Set(found.foreign.map(({ ifindex }) => ifindex));
  const present = new Map(found.ours.map((filter) => [filterKey(filter), filter]));
  return planned
    .filter((filter) => {
      const before = present.get(filterKey(filter));
      const isDone = before?.isCurrent === true && before.program === filter.program;
      return !isDone && !missing.has(filter.ifindex) && !foreign.has(filter.ifindex);
    })
    .map((filter) => ({ kind: 'attach-filter', filter }));
}

/**
 * Returns the filters to detach: those that are not planned, and those beside a filter of others, whose decision about a
 * packet of a known flow would be passed over. The link of a Pod that is in no plan is about to go, with its filters.
 */
export function filterDetachments(
  { links, filters: planned = [] }: HostState,
  { filters: found }: ObservedHost,
): readonly Operation[] {
  if (found === undefined) return [];
  const keys = new Set(planned.map(filterKey));
  const foreign = new Set(found.foreign.map(({ ifindex }) => ifindex));
  const inPlan = new Set(links.map(({ ifindex }) => ifindex));
  return found.ours
    .filter((filter) => !keys.has(filterKey(filter)) || foreign.has(filter.ifindex))
    .filter(({ ifindex, ifname }) => inPlan.has(ifindex) || !isHostVethName(ifname))
    .map(({ isCurrent: _ignored, ...filter }) => ({ kind: 'detach-filter', filter }));
}

/**
 * Reports links that have no filter of ours because others have one there. Links of Pods with the same filter are one
 * conflict, which stays the same while such Pods come and go.
 */
export function filterConflicts(
  { filters: planned = [] }: HostState,
  { filters: found }: ObservedHost,
): readonly Conflict[] {
  if (found === undefined || planned.length === 0) return [];
  const wanted = new Set(planned.map(({ ifindex }) => ifindex));
  const messages = found.foreign
    .filter(({ ifindex }) => wanted.has(ifindex))
    .map(({ ifname, shown }) => {
      const where = isHostVethName(ifname) ? 'links of Pods' : ifname;
      return `${where}: ${shown} is not ours; the fast path leaves such a link alone, its packets take the kernel's own way`;
    });
  return [...new Set(messages)].sort().map((message) => ({ kind: 'filter', message }));
}
