import type { EniRecord } from '../../../agent/journal/journal-content.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { WatchOwner } from './watch-event.ts';

/** The part of the agent's journal that names need. */
type NameSource = { readonly leases: readonly Lease[]; readonly enis: readonly EniRecord[] };

/** Look-up of the owner of a kernel object, by what the kernel reports about it. */
export type WatchNames = {
  podOfIp(ip: string): WatchOwner | undefined;
  podOfVeth(ifname: string): WatchOwner | undefined;
  /** Returns the Pod of a sandbox. Without a lease the sandbox itself is the owner. */
  podOfSandbox(containerId: string, ifName: string): WatchOwner;
  eniOfTable(table: number): EniRecord | undefined;
  eniOfMac(mac: string): EniRecord | undefined;
};

/**
 * Minimum time between two reads for kernel objects. Reading a journal takes milliseconds: a burst of changes by other
 * programs must not cause a burst of reads. An event of the agent about an unknown sandbox is always worth a read:
 * there are few of them, and the lease may be gone at the next one.
 */
const MIN_READ_INTERVAL_MS = 100;
/** Limit of remembered Pods, most of them deleted: a watch may run for weeks. */
const MAX_PODS = 10_000;

/**
 * Creates a cache of names of Pods and ENIs from the agent's journal. It calls `read` again for an unknown name, since
 * the agent stores a lease before it changes the kernel. Deleted Pods stay in the cache, because the kernel deletes
 * their objects later.
 */
export function createNames(read: () => NameSource | undefined, clock: Pick<Clock, 'monotonicMs'>): WatchNames {
  const byIp = new Map<string, WatchOwner>();
  const byVeth = new Map<string, WatchOwner>();
  const byKey = new Map<string, WatchOwner>();
  const byTable = new Map<number, EniRecord>();
  const byMac = new Map<string, EniRecord>();
  let readAtMs = Number.NEGATIVE_INFINITY;
  const refresh = () => {
    readAtMs = clock.monotonicMs();
    if (byKey.size > MAX_PODS) for (const map of [byIp, byVeth, byKey, byTable, byMac]) map.clear();
    const source = read();
    for (const lease of source?.leases ?? []) {
      const owner = podOwner(lease);
      for (const { ip } of lease.addresses) byIp.set(ip, owner);
      if (lease.hostVeth !== undefined) byVeth.set(lease.hostVeth.name, owner);
      byKey.set(`${lease.containerId}/${lease.ifName}`, owner);
    }
    for (const record of source?.enis ?? []) {
      byTable.set(record.table, record);
      byMac.set(record.mac, record);
    }
  };
  const find = <K, V>(map: ReadonlyMap<K, V>, key: K, minIntervalMs = MIN_READ_INTERVAL_MS): V | undefined => {
    if (!map.has(key) && clock.monotonicMs() - readAtMs >= minIntervalMs) refresh();
    return map.get(key);
  };
  return {
    podOfIp: (ip) => find(byIp, ip),
    podOfVeth: (ifname) => find(byVeth, ifname),
    podOfSandbox: (containerId, ifName) =>
      find(byKey, `${containerId}/${ifName}`, 0) ?? {
        kind: 'pod',
        name: `${containerId.slice(0, 12)}/${ifName}`,
        containerId,
        ips: [],
        eniId: '',
      },
    eniOfTable: (table) => find(byTable, table),
    eniOfMac: (mac) => find(byMac, mac),
  };
}

function podOwner(lease: Lease): WatchOwner {
  const { containerId, ifName, podNamespace, podName, addresses, eniId } = lease;
  const name = podName === '' ? `${containerId.slice(0, 12)}/${ifName}` : `${podNamespace}/${podName}`;
  return { kind: 'pod', name, containerId, ips: addresses.map(({ ip }) => ip), eniId };
}
