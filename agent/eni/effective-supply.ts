import { type Lease, leaseKey } from '../journal/lease.ts';
import type { ClaimMark, Supply, SupplyEni, TakenOver } from '../journal/supply.ts';

/**
 * Keeps in a new supply the ENIs that it no longer names while Pods still hold their addresses: not attached, empty, so
 * that nothing new is given, but known, so that their Pods' routes and rules stay until the last one ends. And notes
 * which kept addresses it no longer has that sandboxes here still hold: they are another's by now. Pure.
 */
export function keepEnisInUse(next: Supply, previous: Supply | undefined, leases: Iterable<Lease>): Supply {
  const held = [...leases];
  const named = new Set(next.enis.map(({ eniId }) => eniId));
  const used = new Set(held.map(({ eniId }) => eniId));
  const kept = (previous?.enis ?? [])
    .filter(({ eniId }) => used.has(eniId) && !named.has(eniId))
    .map((eni): SupplyEni => ({ ...eni, attached: false, draining: true, addresses: [] }));
  const takenOver = findTakenOver(next, previous, held);
  if (kept.length === 0 && takenOver.length === 0) return next;
  return { ...next, enis: [...next.enis, ...kept], ...(takenOver.length === 0 ? {} : { takenOver }) };
}

/**
 * A kept address, or that of a kept ENI, that leaves the supply under a sandbox went to the next Pod of its name, on another node; nobody but its
 * own Pod brings it back. An address of the pool never does.
 */
function findTakenOver(next: Supply, previous: Supply | undefined, leases: readonly Lease[]): readonly TakenOver[] {
  const before = new Set((previous?.takenOver ?? []).map(({ ip, leaseKey }) => `${ip} ${leaseKey}`));
  const [marksBefore, marks] = [marksOf(previous), marksOf(next)];
  return leases.flatMap((lease) => {
    const key = leaseKey(lease.containerId, lease.ifName);
    return lease.addresses.flatMap(({ ip }): readonly TakenOver[] => {
      const isTaken = before.has(`${ip} ${key}`)
        ? lease.podUid === '' || marks.get(ip)?.uid !== lease.podUid
        : !marks.has(ip) && marksBefore.get(ip) !== undefined;
      return isTaken ? [{ ip, leaseKey: key }] : [];
    });
  });
}

/** Every address of a supply with its mark, those of whole ENIs too; undefined where it has none. */
function marksOf(supply: Supply | undefined): ReadonlyMap<string, ClaimMark | undefined> {
  const shared = supply?.enis.flatMap(({ addresses }) => addresses.map(({ ip, claim }) => [ip, claim] as const)) ?? [];
  const whole =
    supply?.direct?.enis.flatMap(({ primary, claim }) => primary.map(({ ip }) => [ip, claim] as const)) ?? [];
  return new Map([...shared, ...whole]);
}
