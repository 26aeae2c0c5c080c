import type { Operation } from '../../dataplane/operation.ts';
import type { Lease } from '../journal/lease.ts';

/** Groups operations by the lease that they are about; operations of the node and its ENIs are left out. */
export function groupByLease(
  operations: readonly Operation[],
  leases: Iterable<Lease>,
): ReadonlyMap<Lease, readonly Operation[]> {
  const byIp = new Map<string, Lease>();
  const byIfindex = new Map<number, Lease>();
  for (const lease of leases) {
    for (const { ip } of lease.addresses) byIp.set(ip, lease);
    if (lease.hostVeth?.ifindex !== undefined) byIfindex.set(lease.hostVeth.ifindex, lease);
  }
  const found = new Map<Lease, Operation[]>();
  for (const operation of operations) {
    const lease = leaseOf(operation, byIp, byIfindex);
    if (lease === undefined) continue;
    const group = found.get(lease);
    if (group === undefined) found.set(lease, [operation]);
    else group.push(operation);
  }
  return found;
}

function leaseOf(
  operation: Operation,
  byIp: ReadonlyMap<string, Lease>,
  byIfindex: ReadonlyMap<number, Lease>,
): Lease | undefined {
  switch (operation.kind) {
    case 'add-rule':
    case 'delete-rule':
      return byIp.get(bare(operation.rule.src)) ?? byIp.get(bare(operation.rule.dst));
    case 'replace-route':
    case 'delete-route':
      return byIp.get(bare(operation.route.dst)) ?? byIfindex.get(operation.route.oif);
    case 'replace-neigh':
    case 'delete-neigh':
      return byIfindex.get(operation.neigh.ifindex);
    case 'add-address':
    case 'delete-address':
      return byIfindex.get(operation.address.ifindex);
    case 'set-link':
    case 'set-port':
      return byIfindex.get(operation.ifindex);
    case 'attach-filter':
    case 'detach-filter':
      return byIfindex.get(operation.filter.ifindex);
    case 'set-sysctl':
      return ofSysctl(operation.key.path, byIfindex);
    case 'make-bridge':
    case 'delete-bridge':
    case 'load-nft':
    case 'replace-flowtable':
    case 'delete-flowtable':
    case 'add-flow-devices':
    case 'delete-flow-devices':
      return undefined;
  }
}

/**
 * Finds the lease by the name of its link, because settings name a link and not its index. Pods have few enough host
 * links to search them all.
 */
function ofSysctl(path: readonly string[], byIfindex: ReadonlyMap<number, Lease>): Lease | undefined {
  const names = new Set(path);
  for (const lease of byIfindex.values()) if (names.has(lease.hostVeth?.name ?? '')) return lease;
  return undefined;
}

function bare(prefix: string | undefined): string {
  return prefix?.split('/', 1)[0] ?? '';
}
