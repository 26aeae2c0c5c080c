import { type Lease, leaseKey } from '../journal/lease.ts';
import { ANY_UID, type ClaimMark, type Supply, type SupplyEni, type TakenOver } from '../journal/supply.ts';

/**
 * Adds to a new supply the ENIs that it no longer lists while Pods still have their addresses. They are not attached
 * and empty, so that no new Pod gets one; the routes and rules of their Pods stay until the last Pod ends. Also records
 * static addresses that the supply no longer lists while sandboxes here still have them: they belong to another Pod by
 * now.
 * @param listed The supply as it came, with what the node refuses: an address that is refused is not taken over.
 */
export function retainEnisInUse(
  next: Supply,
  previous: Supply | undefined,
  leases: Iterable<Lease>,
  listed: Supply = next,
): Supply {
  const leaseList = [...leases];
  const named = new Set(next.enis.map(({ eniId }) => eniId));
  const used = new Set(leaseList.map(({ eniId }) => eniId));
  const retained = (previous?.enis ?? [])
    .filter(({ eniId }) => used.has(eniId) && !named.has(eniId))
    .map((eni): SupplyEni => ({ ...eni, attached: false, draining: true, addresses: [] }));
  const takenOver = findTakenOver(listed, previous, leaseList);
  if (retained.length === 0 && takenOver.length === 0) return next;
  return { ...next, enis: [...next.enis, ...retained], ...(takenOver.length === 0 ? {} : { takenOver }) };
}

/**
 * Finds static addresses, also those of whole ENIs, that left the supply while a sandbox here still has them: they went
 * to the next Pod of the name, on another node. Such an entry ends only when the supply lists the address for the
 * sandbox's own Pod again. An address of the pool is never taken over.
 */
function findTakenOver(listed: Supply, previous: Supply | undefined, leases: readonly Lease[]): readonly TakenOver[] {
  const before = new Set((previous?.takenOver ?? []).map(({ ip, leaseKey }) => `${ip} ${leaseKey}`));
  const [marksBefore, marks] = [marksOf(previous), marksOf(listed)];
  return leases.flatMap((lease) => {
    const key = leaseKey(lease);
    return lease.addresses.flatMap(({ ip }): readonly TakenOver[] => {
      const isTaken = before.has(`${ip} ${key}`)
        ? lease.podUid === '' || marks.get(ip)?.uid !== lease.podUid
        : !marks.has(ip) && isOfOneUid(marksBefore.get(ip));
      return isTaken ? [{ ip, leaseKey: key }] : [];
    });
  });
}

/** An address that any Pod of a name may have stays with the Pod that has it. */
function isOfOneUid(mark: ClaimMark | undefined): boolean {
  return mark !== undefined && mark.uid !== ANY_UID;
}

/** Returns every address of a supply with its claim mark, whole ENIs included; undefined for an address without one. */
function marksOf(supply: Supply | undefined): ReadonlyMap<string, ClaimMark | undefined> {
  const shared = supply?.enis.flatMap(({ addresses }) => addresses.map(({ ip, claim }) => [ip, claim] as const)) ?? [];
  const wholeEnis =
    supply?.direct?.enis.flatMap(({ primary, claim }) => primary.map(({ ip }) => [ip, claim] as const)) ?? [];
  return new Map([...shared, ...wholeEnis]);
}
