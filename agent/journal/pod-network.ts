import { hostVethAlias, sideName } from '../../dataplane/host-veth-name.ts';
import type { BridgePodNetwork, EniPodNetwork, ExclusiveNic } from '../../dataplane/network.ts';
import { DIRECT_LINK_GROUP } from '../../dataplane/numbers.ts';
import { blockOf, podCidrOf } from '../../dataplane/pod-cidr.ts';
import type { EniRecord } from './journal-content.ts';
import type { Lease, LeasedNic } from './lease.ts';

/** Describes a lease on an ENI for the data plane; `record` is the record of the lease's ENI. */
export function podNetworkOf(lease: Lease, record: Pick<EniRecord, 'table'>): EniPodNetwork {
  const { plugin, uplink } = lease;
  return {
    ...linkOf(lease),
    kind: plugin === 'bridge' ? 'route-eni' : plugin,
    eniTable: record.table,
    ...(uplink === undefined ? {} : { hasForeignRules: uplink }),
  };
}

/** Describes the lease of a GlobalRoute Pod for the data plane; undefined for any other lease. */
export function bridgePodNetworkOf(lease: Lease): BridgePodNetwork | undefined {
  const { block } = lease;
  if (block === undefined) return undefined;
  return { ...linkOf(lease), kind: 'bridge', wiring: block.wiring, block: blockOf(podCidrOf(block.cidr)) };
}

function linkOf(lease: Lease): Omit<EniPodNetwork, 'kind' | 'eniTable'> {
  const { containerId, ifName, mtu } = lease;
  return {
    key: { containerId, ifName },
    ips: lease.addresses.map(({ ip }) => ip),
    hostVeth: lease.hostVeth ?? { name: '', mac: '' },
    podVeth: { name: ifName, mac: lease.podMac ?? '' },
    mtu,
    alias: hostVethAlias(lease),
  };
}

/** Describes a lease of a whole ENI for the data plane; undefined when it names no interface. */
export function exclusivePodNetworkOf(lease: Lease): EniPodNetwork | undefined {
  const { nic, ifName } = lease;
  if (nic === undefined) return undefined;
  return {
    ...podNetworkOf(lease, { table: DIRECT_LINK_GROUP }),
    podVeth: { name: sideName(ifName), mac: nic.sideMac },
    nic: exclusiveNicOf(nic),
  };
}

function exclusiveNicOf({ mac, hostName, mtu, primary }: LeasedNic): ExclusiveNic {
  return {
    ...{ mac, hostName, mtu },
    addresses: primary.map(({ ip, gateway, subnetCidr }) => ({
      ...{ ip, gateway },
      prefixLength: Number(subnetCidr.split('/')[1]),
    })),
  };
}
