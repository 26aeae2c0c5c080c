import type { CiliumAllocation, CiliumAllocations, ReleaseState } from '../../../crd/cilium-node.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { CILIUM_NODES } from '../../../kube/resource-types.ts';
import { type CiliumNodeEntry, decodeCiliumNode } from './cilium-node-entry.ts';

/** Result of a write; `lost`: the object is another one by now, or is gone. */
type CiliumWrite = { readonly kind: 'written'; readonly entry: CiliumNodeEntry } | { readonly kind: 'lost' };

/**
 * Writes the pool of a CiliumNode: only what differs, on condition that the object is as it was read. Entries that could
 * not be read stay. @throws KubeError
 */
export async function writePool(
  kube: KubeClient,
  entry: CiliumNodeEntry,
  pool: CiliumAllocations,
  signal: AbortSignal,
): Promise<CiliumWrite> {
  const body = { spec: { ipam: { pool: poolPatch(entry.ipam.pool, pool) } } };
  return await patchCiliumNode(kube, entry, body, undefined, signal);
}

/** Reports whether two pools have the same entries. */
export function isSamePool(one: CiliumAllocations, other: CiliumAllocations): boolean {
  return one.size === other.size && [...one].every(([ip, entry]) => isSameEntry(entry, other.get(ip)));
}

/**
 * Writes release states (undefined takes the entry out) and the error of a CiliumNode, on condition that the object is as
 * it was read: so nothing that the node's agent wrote meanwhile is lost. @throws KubeError
 */
export async function writeReleases(
  kube: KubeClient,
  entry: CiliumNodeEntry,
  change: { readonly entries: ReadonlyMap<string, ReleaseState | undefined>; readonly error: string },
  signal: AbortSignal,
): Promise<CiliumWrite> {
  const { entries, error } = change;
  const ipam = {
    ...(entries.size === 0
      ? {}
      : { 'release-ips': Object.fromEntries([...entries].map(([ip, state]) => [ip, state ?? null])) }),
    ...(error === entry.ipam.operatorError ? {} : { 'operator-status': { error } }),
  };
  return await patchCiliumNode(kube, entry, { status: { ipam } }, 'status', signal);
}

async function patchCiliumNode(
  kube: KubeClient,
  { name, uid, resourceVersion }: CiliumNodeEntry,
  body: Readonly<Record<string, unknown>>,
  subresource: 'status' | undefined,
  signal: AbortSignal,
): Promise<CiliumWrite> {
  const guarded = { metadata: { uid, resourceVersion }, ...body };
  const patch = { kind: 'merge', body: guarded, ...(subresource === undefined ? {} : { subresource }) } as const;
  try {
    const written = await kube.patch(CILIUM_NODES, { name }, patch, signal);
    return { kind: 'written', entry: decodeCiliumNode(written) };
  } catch (error) {
    if (isKubeError(error, 'CONFLICT', 'NOT_FOUND')) return { kind: 'lost' };
    throw error;
  }
}

function poolPatch(now: CiliumAllocations, desired: CiliumAllocations): Readonly<Record<string, unknown>> {
  const gone = [...now.keys()].filter((ip) => !desired.has(ip)).map((ip) => [ip, null]);
  const changed = [...desired].filter(([ip, entry]) => !isSameEntry(entry, now.get(ip)));
  // A merge patch keeps a field that it does not name.
  const entries = changed.map(([ip, { owner = null, resource = null }]) => [ip, { owner, resource }]);
  return Object.fromEntries([...gone, ...entries]);
}

function isSameEntry(one: CiliumAllocation, other: CiliumAllocation | undefined): boolean {
  return other !== undefined && one.owner === other.owner && one.resource === other.resource;
}
