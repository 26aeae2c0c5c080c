import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { isSameData } from './same-data.ts';

/**
 * Returns the status with these ENIs. The epoch grows by one and the counts are updated; when nothing changes it is the
 * same object. Every change of eniInfos goes through this function.
 */
export function withEnis(status: NodeEniConfigStatus, enis: readonly NodeEniInfo[]): NodeEniConfigStatus {
  const same = isSameData(status.eniInfos ?? [], enis);
  if (same && status.routeENIs !== undefined) return status;
  const supplyEpoch = (status.supplyEpoch ?? 0) + (same ? 0 : 1);
  return { ...status, eniInfos: enis, supplyEpoch, ...countsOf(status, enis) };
}

/** Returns the status with the counts of its ENIs; the same object where they are right, or where it has neither. */
export function withCounts(status: NodeEniConfigStatus): NodeEniConfigStatus {
  const { eniInfos = [], routeENIs, routeENIIPs, directENIs } = status;
  if (eniInfos.length === 0 && routeENIs === undefined) return status;
  const counts = countsOf(status, eniInfos);
  const recorded = { routeENIs, routeENIIPs, directENIs };
  return isSameData(recorded, counts) ? status : { ...status, ...counts };
}

function countsOf({ directENIs }: NodeEniConfigStatus, enis: readonly NodeEniInfo[]) {
  const attached = enis.filter((eni) => isShared(eni) && eni.state === 'Attached');
  const exclusive = enis.filter((eni) => !isShared(eni) && eni.state === 'Attached').length;
  return {
    routeENIs: attached.length,
    routeENIIPs: attached.reduce((sum, eni) => sum + assignedIpv4Of(eni).length, 0),
    ...(exclusive > 0 || directENIs !== undefined ? { directENIs: exclusive } : {}),
  };
}

/** Returns the status with one ENI changed; undefined removes it. The same object when there is no such ENI. */
export function withEni(
  status: NodeEniConfigStatus,
  eniID: string,
  change: (eni: NodeEniInfo) => NodeEniInfo | undefined,
): NodeEniConfigStatus {
  const enis = (status.eniInfos ?? []).flatMap((eni) => {
    const changed = eni.eniID === eniID ? change(eni) : eni;
    return changed === undefined ? [] : [changed];
  });
  return withEnis(status, enis);
}

/** Returns the ENI without its device index: it is on no instance. */
export function unboundEni(eni: NodeEniInfo): NodeEniInfo {
  const { deviceIndex: _gone, attachType: _place, ...rest } = eni;
  return rest;
}

/** Returns the ENI on a place of that type; a standard one is not named. */
export function withPlace(eni: NodeEniInfo, isExtension: boolean): NodeEniInfo {
  if (isExtension) return { ...eni, attachType: 'extension' };
  const { attachType: _standard, ...rest } = eni;
  return rest;
}

/**
 * Reports whether an ENI is, or is to be, on a place of the extension type. It is recorded with the intent to attach it, so
 * that a call that is sent again asks for the same.
 */
export function isForExtension({ eniInfos = [] }: NodeEniConfigStatus, eniID: string): boolean {
  return eniInfos.some((eni) => eni.eniID === eniID && eni.attachType === 'extension');
}

/** Returns the ENI as Detaching: nothing on it serves any more. */
export function detachingEni(eni: NodeEniInfo): NodeEniInfo {
  return { ...eni, state: 'Detaching', addresses: (eni.addresses ?? []).map(releasing) };
}

/** Returns the address as Releasing; a static one is no Pod's from then on. */
export function releasing(address: NodeEniAddress): NodeEniAddress {
  if (address.state === 'Releasing' && address.claim?.uid === undefined) return address;
  if (address.claim === undefined) return { ...address, state: 'Releasing' };
  const { uid: _former, ...claim } = address.claim;
  return { ...address, state: 'Releasing', claim };
}

/** Reports whether Pods share the ENI. An exclusive ENI is used by one Pod and does not count as supply of addresses. */
export function isShared({ mode }: NodeEniInfo): boolean {
  return mode === undefined || mode === 'route-eni';
}

/** Reports whether an address is IPv4. */
export function isIpv4(ip: string): boolean {
  return !ip.includes(':');
}

/** Lists the IPv4 addresses of an ENI that may serve Pods. */
export function assignedIpv4Of(eni: NodeEniInfo): readonly NodeEniAddress[] {
  return (eni.addresses ?? []).filter((address) => address.state === 'Assigned' && isIpv4(address.ip));
}

/** Lists those of them that belong to the pool: without a claim. */
export function pooledIpv4Of(eni: NodeEniInfo): readonly NodeEniAddress[] {
  return assignedIpv4Of(eni).filter(({ claim }) => claim === undefined);
}

/** Counts the IPv4 addresses of an ENI, Releasing ones included: they use slots until they are unassigned. */
export function ipv4CountOf(eni: NodeEniInfo): number {
  return (eni.addresses ?? []).filter((address) => isIpv4(address.ip)).length;
}
