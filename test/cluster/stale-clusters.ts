import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanupStale, killQuietly } from '../../sim/support/run-names.ts';
import { cgroupPids, removeCgroup } from '../support/cgroup.ts';

/** Start of every name that a real cluster has on this machine. */
export const CLUSTER_STEM = 'tke-cluster-';

/** Folder of the cluster that a name such as `tke-cluster-3f9a1c-node1` belongs to. */
export function clusterDir(name: string): string {
  return join(tmpdir(), name.split('-').slice(0, 3).join('-'));
}

/**
 * Removes what killed runs left: processes, network namespaces, cgroups, folders. Clusters of living processes are let
 * alone. Returns the names of the network namespaces that it removed.
 */
export async function removeStaleClusters(): Promise<readonly string[]> {
  const dirs = new Set<string>();
  const netnsNames: string[] = [];
  const removed = await cleanupStale(CLUSTER_STEM, async (name) => {
    for (const pid of cgroupPids(name)) killQuietly(pid);
    dirs.add(clusterDir(name));
    netnsNames.push(name);
  });
  // Once the processes of all machines are gone, as `cleanupStale` sees to.
  for (const name of netnsNames) await removeCgroup(name);
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
  return removed;
}
