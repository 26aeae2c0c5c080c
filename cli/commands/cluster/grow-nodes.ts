import { isOpenToNewNodes } from '../../../crd/new-node.ts';
import { countRequested, pendingCreationsOf, sumSubnetUsage } from '../../../crd/subnet-supply.ts';
import type { ClusterNec } from './cluster-facts.ts';
import type { SubnetSupplies } from './read-published.ts';

/** Free addresses by subnet. */
export type FreeBySubnet = Map<string, number>;

/**
 * Counts the free addresses of published subnets: minus what nodes have taken since ipamd published the number. A
 * subnet that the cloud reported as full has none.
 */
export function countFree({ bySubnet }: SubnetSupplies, necs: readonly ClusterNec[]): FreeBySubnet {
  const used = sumSubnetUsage(necs.map(({ status }) => status));
  return new Map(
    [...bySubnet].map(([id, { free, held, blocked }]) => {
      const growth = Math.max(0, (used.get(id) ?? 0) - held);
      return [id, blocked === true ? 0 : Math.max(0, free - growth)];
    }),
  );
}

/** Counts the addresses that a node lacks of those that its agent asks for, as far as its limits allow them. */
export function countMissing({ spec, status }: ClusterNec): number {
  const { maxRouteENI = 0, maxIPPerENI = 0, desiredRouteENIIP = 0 } = spec;
  const coming = pendingCreationsOf(status).reduce((sum, { ipCount, ips }) => sum + (ipCount ?? ips?.length ?? 0), 0);
  const have = sharedEnisOf(status).reduce((sum, eni) => sum + ipCountOf(eni) + countRequested(status, eni), coming);
  return Math.max(0, Math.min(desiredRouteENIIP, maxRouteENI * maxIPPerENI) - have);
}

/**
 * Gives a node up to `count` more addresses and takes them from `free`: first on the ENIs that it has, then on new ones
 * in the subnet with the most free addresses, as ipamd does. Returns how many it got.
 */
export function growNode(nec: ClusterNec, count: number, free: FreeBySubnet, supplies: SubnetSupplies): number {
  const { spec, status } = nec;
  const { maxRouteENI = 0, maxIPPerENI = 0 } = spec;
  if (nec.deletionRequestedMs !== undefined) return 0;
  const enis = sharedEnisOf(status);
  let missing = count;
  const take = (subnetId: string, ips: number, forEni: number): void => {
    missing -= ips;
    free.set(subnetId, (free.get(subnetId) ?? 0) - ips - forEni);
  };
  for (const eni of enis) {
    const { subnetID = '', draining, state } = eni;
    if (draining === true || state === 'Detaching') continue;
    const slots = maxIPPerENI - ipCountOf(eni) - countRequested(status, eni);
    take(subnetID, Math.max(0, Math.min(missing, slots, free.get(subnetID) ?? 0)), 0);
  }
  const choices = choicesOf(nec, supplies);
  const moreEnis = maxIPPerENI === 0 ? 0 : maxRouteENI - enis.length - pendingCreationsOf(status).length;
  for (let eni = 0; eni < moreEnis && missing > 0; eni++) {
    const [subnetId = '', left = 0] = fullestOf(choices, free);
    if (left < 2) break;
    take(subnetId, Math.min(missing, maxIPPerENI, left - 1), 1);
  }
  return count - missing;
}

type Enis = NonNullable<ClusterNec['status']['eniInfos']>;

function sharedEnisOf(status: ClusterNec['status']): Enis {
  return (status.eniInfos ?? []).filter(({ mode }) => mode !== 'direct-eni');
}

function ipCountOf({ addresses = [] }: Enis[number]): number {
  return addresses.filter(({ ip }) => !ip.includes(':')).length;
}

/** Lists the subnets for new ENIs of a node: those that it names, else those of its zone that are open to all. */
function choicesOf({ spec, status }: ClusterNec, { bySubnet }: SubnetSupplies): readonly string[] {
  const named = spec.subnetIDs ?? [];
  return [...bySubnet]
    .filter(([id, supply]) => (named.length > 0 ? named.includes(id) : isOpenToNewNodes(supply)))
    .filter(([, { zone }]) => zone === status.zone)
    .map(([id]) => id);
}

function fullestOf(ids: readonly string[], free: FreeBySubnet): readonly [string, number] | [] {
  const counts = ids.map((id): readonly [string, number] => [id, free.get(id) ?? 0]);
  const [first, ...others] = counts;
  return first === undefined ? [] : others.reduce((best, one) => (one[1] > best[1] ? one : best), first);
}
