import { type NodeOwn, refusalsOfEni } from '../../crd/eni-refusals.ts';
import type { EniPrimaryAddress, Supply, SupplyEni } from '../journal/supply.ts';
import { findPrimary, type HostView } from '../node-network.ts';

/** What of a supply the node does not take: a whole ENI, or one of its addresses (`ip`). */
export type SupplyRefusal = { readonly eniId: string; readonly ip?: string; readonly text: string };

/**
 * Takes out of a supply what the node must not get: ENIs and addresses that are its own, or that no Pod can have. The
 * rest of the supply is untouched.
 * @param primaryName Name of the primary interface if it is configured.
 */
export function refuseSupply(
  supply: Supply,
  host: HostView,
  primaryName: string | undefined,
): { readonly supply: Supply; readonly refusals: readonly SupplyRefusal[] } {
  const refusals: SupplyRefusal[] = [];
  const ownOf = ownNetwork(supply, host, primaryName);
  const isRefused = (
    { eniId, mac, primary }: CheckedHere,
    ips: readonly string[],
  ): ReadonlyMap<string, string> | true => {
    const families = primary.map(({ ip, gateway, subnetCidr }) => ({ primaryIp: ip, gateway, subnetCidr }));
    const { whole, addresses } = refusalsOfEni({ mac, families, addresses: ips }, ownOf(mac));
    if (whole !== undefined) refusals.push({ eniId, text: `refused: ${whole}` });
    for (const [ip, why] of addresses) refusals.push({ eniId, ip, text: `address ${ip} refused: it is ${why}` });
    return whole === undefined ? addresses : true;
  };
  const enis = supply.enis.flatMap((eni): readonly SupplyEni[] => {
    const refused = isRefused(
      eni,
      eni.addresses.map(({ ip }) => ip),
    );
    if (refused === true) return [];
    return refused.size === 0 ? [eni] : [{ ...eni, addresses: eni.addresses.filter(({ ip }) => !refused.has(ip)) }];
  });
  const direct = supply.direct?.enis.filter((eni) => isRefused(eni, []) !== true);
  if (refusals.length === 0) return { supply, refusals };
  const withDirect = supply.direct === undefined ? {} : { direct: { ...supply.direct, enis: direct ?? [] } };
  return { supply: { ...supply, enis, ...withDirect }, refusals };
}

type CheckedHere = { readonly eniId: string; readonly mac: string; readonly primary: readonly EniPrimaryAddress[] };

function ownNetwork(supply: Supply, host: HostView, primaryName: string | undefined): (mac: string) => NodeOwn {
  const suppliedMacs = new Set([...supply.enis, ...(supply.direct?.enis ?? [])].map(({ mac }) => mac));
  // Without the supply's ENIs no default route may be left: then the supply names the primary interface itself.
  const primary = findPrimary(host, primaryName, suppliedMacs) ?? findPrimary(host, primaryName, new Set());
  const macOf = new Map(host.links.map(({ ifindex, address }) => [ifindex, address ?? '']));
  const primaryMac = primary === undefined ? undefined : macOf.get(primary.ifindex);
  const macs = new Set(primaryMac === undefined ? [] : [primaryMac]);
  return (mac) => {
    const others = host.addresses.filter(({ ifindex }) => ifindex === primary?.ifindex || macOf.get(ifindex) !== mac);
    return { macs, addresses: new Set(others.map(({ local, address }) => local ?? address)) };
  };
}
