import type { Lease } from '../journal/lease.ts';
import type { Supply, SupplyEni } from '../journal/supply.ts';

/**
 * Keeps in a new supply the ENIs that it no longer names while Pods still hold their addresses: not attached, empty, so
 * that nothing new is given, but known, so that their Pods' routes and rules stay until the last one ends. Pure.
 */
export function keepEnisInUse(next: Supply, previous: Supply | undefined, leases: Iterable<Lease>): Supply {
  const named = new Set(next.enis.map(({ eniId }) => eniId));
  const used = new Set([...leases].map(({ eniId }) => eniId));
  const kept = (previous?.enis ?? [])
    .filter(({ eniId }) => used.has(eniId) && !named.has(eniId))
    .map((eni): SupplyEni => ({ ...eni, attached: false, draining: true, addresses: [] }));
  return kept.length === 0 ? next : { ...next, enis: [...next.enis, ...kept] };
}
