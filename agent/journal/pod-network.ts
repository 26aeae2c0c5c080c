import { hostVethAlias } from '../../dataplane/host-veth-name.ts';
import type { PodNetwork } from '../../dataplane/network.ts';
import type { EniRecord } from './journal-content.ts';
import type { Lease } from './lease.ts';

/** Describes a lease as the data plane sees it; `record` is what was decided for the lease's ENI. Pure. */
export function podNetworkOf(lease: Lease, record: Pick<EniRecord, 'table'>): PodNetwork {
  const { containerId, ifName, plugin, mtu } = lease;
  return {
    key: { containerId, ifName },
    kind: plugin,
    ips: lease.addresses.map(({ ip }) => ip),
    eniTable: record.table,
    hostVeth: lease.hostVeth ?? { name: '', mac: '' },
    podVeth: { name: ifName, mac: lease.podMac ?? '' },
    mtu,
    alias: hostVethAlias(lease),
  };
}
