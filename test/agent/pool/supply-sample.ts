import type { Lease } from '../../../agent/journal/lease.ts';
import type { Supply, SupplyAddress, SupplyEni } from '../../../agent/journal/supply.ts';
import { familyOf } from '../../../dataplane/ip-prefix.ts';

/** Makes an ENI with the given addresses; assignment ids are `as-<ip>`. */
export function sampleEni(eniId: string, ips: readonly string[], change: Partial<SupplyEni> = {}): SupplyEni {
  return {
    eniId,
    mac: '02:00:00:00:00:01',
    primary: [{ ip: '10.0.0.2', family: 4, gateway: '10.0.0.1', subnetCidr: '10.0.0.0/16' }],
    attached: true,
    draining: false,
    addresses: ips.map((ip) => sampleAddress(ip)),
    ...change,
  };
}

/** Makes an assigned address. */
export function sampleAddress(ip: string, change: Partial<SupplyAddress> = {}): SupplyAddress {
  return { ip, family: familyOf(ip), assignmentId: `as-${ip}`, state: 'assigned', ...change };
}

/** Makes a supply of the given ENIs. */
export function sampleSupply(enis: readonly SupplyEni[], epoch = 1): Supply {
  return { nodeName: 'node-1', epoch, enis, warm: { min: 5, max: 5 } };
}

/** Makes a lease that has the given addresses of one ENI. */
export function sampleLease(
  containerId: string,
  eniId: string,
  ips: readonly string[],
  change: Partial<Lease> = {},
): Lease {
  return {
    containerId,
    ifName: 'eth0',
    network: 'tke-eni',
    plugin: 'route-eni',
    netns: `/run/netns/${containerId}`,
    podNamespace: 'default',
    podName: `pod-${containerId}`,
    podUid: `uid-${containerId}`,
    addresses: ips.map((ip) => ({ ip, family: familyOf(ip), eniId, assignmentId: `as-${ip}` })),
    eniId,
    state: 'pending',
    mtu: 1500,
    createdAtMs: 1_000,
    ...change,
  };
}
