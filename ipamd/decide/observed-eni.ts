import { isInCidr } from '../../crd/ip-text.ts';
import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { Ids, ObservedEni } from './decision.ts';

/** Builds the entry of an ENI that the status does not contain yet, without its addresses. */
export function eniInfoOf(observed: ObservedEni, state: NodeEniInfo['state']): NodeEniInfo {
  return {
    eniID: observed.eniID,
    mac: observed.mac,
    name: observed.name,
    primaryIP: observed.primaryIP,
    gateway: observed.gateway,
    subnetID: observed.subnetID,
    subnetCIDR: observed.subnetCIDR,
    ...(observed.deviceIndex === undefined ? {} : { deviceIndex: observed.deviceIndex }),
    ...(observed.isExtension === true ? { attachType: 'extension' as const } : {}),
    state,
    securityGroups: observed.securityGroups,
    addresses: [],
  };
}

const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/;

/** Reports whether a description has all fields that an entry must have, and does not contradict itself. */
export function isValidEni({ mac, primaryIP, gateway, subnetCIDR }: ObservedEni): boolean {
  return (
    MAC.test(mac) && subnetCIDR !== '' && [primaryIP, gateway].every((ip) => ip !== '' && isInCidr(ip, subnetCIDR))
  );
}

/**
 * Returns the ENI with newly assigned addresses. Addresses that the object already contains, here or on another ENI,
 * are left out, and so are addresses outside the subnet: one address is in one place, whatever the cloud answers. Takes
 * ids.
 */
export function withAssigned(
  status: NodeEniConfigStatus,
  eni: NodeEniInfo,
  ips: readonly string[],
  ids: Ids,
): NodeEniInfo {
  const taken = usedIps(status);
  for (const { ip } of eni.addresses ?? []) taken.add(ip);
  const subnet = eni.subnetCIDR;
  const fresh = [...new Set(ips)].filter((ip) => !taken.has(ip) && subnet !== undefined && isInCidr(ip, subnet));
  if (fresh.length === 0) return eni;
  return { ...eni, addresses: [...(eni.addresses ?? []), ...fresh.map((ip) => newAssignment(ip, ids))] };
}

/** Builds a newly assigned address. Takes an id. */
export function newAssignment(ip: string, ids: Ids): NodeEniAddress {
  return { ip, assignmentID: ids.next(), state: 'Assigned' };
}

/** Returns every address that the object contains. */
export function usedIps(status: NodeEniConfigStatus): Set<string> {
  const ips = (status.eniInfos ?? []).flatMap((eni) => [
    eni.primaryIP,
    eni.primaryIPv6,
    ...(eni.addresses ?? []).map((address) => address.ip),
  ]);
  return new Set(ips.filter((ip) => ip !== undefined));
}

/**
 * Reports whether an ENI is still of the object that created it: it is on no instance, or on that of the object. An exclusive ENI
 * moves between nodes, and for a while the instance of a renamed node has two objects.
 */
export function isWithCreator(creatorInstanceId: string | undefined, attachedTo: string | undefined): boolean {
  return attachedTo === undefined || creatorInstanceId === undefined || creatorInstanceId === attachedTo;
}
