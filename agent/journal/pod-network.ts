import { hostVethAlias, sideName } from '../../dataplane/host-veth-name.ts';
import type { DirectNic, PodNetwork } from '../../dataplane/network.ts';
import { DIRECT_LINK_GROUP } from '../../dataplane/numbers.ts';
import type { EniRecord } from './journal-content.ts';
import type { Lease, LeasedNic } from './lease.ts';

/** Describes a lease for the data plane; `record` is the record of the lease's ENI. */
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

/** Describes a lease of a whole ENI for the data plane; undefined when it names no interface. */
export function directPodNetworkOf(lease: Lease): PodNetwork | undefined {
  const { nic, ifName } = lease;
  if (nic === undefined) return undefined;
  return {
    ...podNetworkOf(lease, { table: DIRECT_LINK_GROUP }),
    podVeth: { name: sideName(ifName), mac: nic.sideMac },
    nic: directNicOf(nic),
  };
}

function directNicOf({ mac, hostName, mtu, primary }: LeasedNic): DirectNic {
  return {
    ...{ mac, hostName, mtu },
    addresses: primary.map(({ ip, gateway, subnetCidr }) => ({
      ...{ ip, gateway },
      prefixLength: Number(subnetCidr.split('/')[1]),
    })),
  };
}
