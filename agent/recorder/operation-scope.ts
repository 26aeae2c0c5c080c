import { hostPrefix } from '../../dataplane/ip-prefix.ts';
import type { EniNetwork } from '../../dataplane/network.ts';
import { isEniTable } from '../../dataplane/numbers.ts';
import type { Operation } from '../../dataplane/operation.ts';
import type { Lease } from '../journal/lease.ts';

/** Of the whole node. */
const NODE = 'node';

/**
 * Returns what an operation is about: tables of ENIs, host prefixes, links by index or name, or the flowtable. Empty: the whole node.
 * Of a route its destination comes first: that tells more of whom it is than the link.
 */
function scopeOf(operation: Operation): readonly string[] {
  switch (operation.kind) {
    case 'set-sysctl': {
      const [, , conf, ifname = 'all'] = operation.key.path;
      return conf !== 'conf' || ifname === 'all' || ifname === 'default' ? [] : [nameKey(ifname)];
    }
    case 'set-link':
    case 'set-port':
      return [linkKey(operation.ifindex), nameKey(operation.ifname)];
    case 'add-address':
    case 'delete-address':
      return [linkKey(operation.address.ifindex), ...hostKeys(operation.address.prefix)];
    case 'replace-route':
    case 'delete-route': {
      const { table, oif, dst } = operation.route;
      return [...tableKeys(table), ...hostKeys(dst), ...(oif === 0 ? [] : [linkKey(oif)])];
    }
    case 'add-rule':
    case 'delete-rule': {
      const { table, src, dst } = operation.rule;
      return [...tableKeys(table), ...hostKeys(src), ...hostKeys(dst)];
    }
    case 'replace-neigh':
    case 'delete-neigh':
      return [linkKey(operation.neigh.ifindex), operation.neigh.dst];
    case 'make-bridge':
    case 'delete-bridge':
      return [linkKey(operation.bridge.ifindex), nameKey(operation.bridge.ifname)];
    case 'attach-filter':
    case 'detach-filter':
      return [linkKey(operation.filter.ifindex), nameKey(operation.filter.ifname)];
    case 'load-nft':
      return [];
    case 'replace-flowtable':
    case 'delete-flowtable':
    case 'add-flow-devices':
    case 'delete-flow-devices':
      // Packets take the kernel's own way without it: nothing relies on it.
      return ['flowtable'];
  }
}

const REMOVALS: ReadonlySet<Operation['kind']> = new Set([
  'delete-rule',
  'delete-route',
  'delete-address',
  'delete-neigh',
  'detach-filter',
]);

/** What lets packets pass by connection tracking. */
const WAYS_BY: ReadonlySet<Operation['kind']> = new Set(['detach-filter', 'delete-flowtable']);

/** Reports whether an operation only removes something. */
function isRemoval({ kind }: Operation): boolean {
  return REMOVALS.has(kind);
}

/**
 * Reports whether a removal has to wait while `undone` are not done: it comes after what replaces it. One of the whole node
 * waits for all, and all wait for one of the whole node; otherwise what has an ENI, a link or an address in common. A setting that
 * TCP connections need is given back when none of them passes by connection tracking any more.
 */
export function reliesOn(removal: Operation, undone: readonly Operation[]): boolean {
  if (removal.kind === 'set-sysctl' && removal.keepsConnections) return undone.some(({ kind }) => WAYS_BY.has(kind));
  if (!isRemoval(removal) || undone.length === 0) return false;
  const scope = scopeOf(removal);
  if (scope.length === 0) return true;
  const keys = new Set(scope);
  return undone.some((operation) => {
    const others = scopeOf(operation);
    return others.length === 0 || others.some((key) => keys.has(key));
  });
}

/** The ENIs that an operation serves, and the Pods, each with its ENI; or the whole node. */
export type OperationOwner =
  | typeof NODE
  | { readonly eniIds: ReadonlySet<string>; readonly pods: ReadonlyMap<string, string> };

/**
 * Finds whom an operation serves: the whole node, or ENIs and Pods. Empty for what serves nothing any more.
 * @param primaryIfname What is set on the primary interface serves the whole node.
 */
export function findOwner(
  operation: Operation,
  { enis, leases }: { readonly enis: ReadonlyMap<string, EniNetwork>; readonly leases: ReadonlyMap<string, Lease> },
  primaryIfname: string,
): OperationOwner {
  const scope = new Set(scopeOf(operation));
  if (scope.size === 0 || scope.has(nameKey(primaryIfname))) return NODE;
  const pods = new Map<string, string>();
  for (const [key, lease] of leases) if (keysOf(lease).some((one) => scope.has(one))) pods.set(key, lease.eniId);
  // A Pod's rule into its ENI's table is the Pod's.
  if (pods.size > 0) return { eniIds: new Set(), pods };
  const eniIds = new Set<string>();
  for (const { eniId, table, ifindex, ifname, addresses } of enis.values()) {
    const keys = [tableKey(table), linkKey(ifindex), nameKey(ifname), ...addresses.map(({ ip }) => hostPrefix(ip))];
    if (keys.some((key) => scope.has(key))) eniIds.add(eniId);
  }
  return { eniIds, pods };
}

/** Groups operations by the lease that they are about; those of the node and its ENIs have none. */
export function groupByLease(
  operations: readonly Operation[],
  leases: Iterable<Lease>,
): ReadonlyMap<Lease | undefined, readonly Operation[]> {
  const byKey = new Map([...leases].flatMap((lease) => keysOf(lease).map((key) => [key, lease] as const)));
  return Map.groupBy(operations, (operation) =>
    scopeOf(operation)
      .map((key) => byKey.get(key))
      .find((lease) => lease !== undefined),
  );
}

/** Returns what is a Pod's own: its addresses and the host's end of its link. */
function keysOf({ addresses, hostVeth }: Lease): readonly string[] {
  return [
    ...addresses.map(({ ip }) => hostPrefix(ip)),
    ...(hostVeth?.ifindex === undefined ? [] : [linkKey(hostVeth.ifindex)]),
    ...(hostVeth === undefined ? [] : [nameKey(hostVeth.name)]),
  ];
}

/** A prefix of many addresses belongs to no Pod or ENI. */
function hostKeys(prefix: string | undefined): readonly string[] {
  return prefix !== undefined && /\/(32|128)$/.test(prefix) ? [prefix] : [];
}

function tableKeys(table: number): readonly string[] {
  return isEniTable(table) ? [tableKey(table)] : [];
}

function tableKey(table: number): string {
  return `table ${table}`;
}

function linkKey(ifindex: number): string {
  return `link ${ifindex}`;
}

function nameKey(ifname: string): string {
  return `name ${ifname}`;
}
