import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { removeIfEmpty } from './folders.ts';
import { waitUntil } from './wait-until.ts';

const CGROUP_ROOT = '/sys/fs/cgroup';

/** The cgroup's folders in every hierarchy that has it; there is one hierarchy in cgroup v2. */
function cgroupFolders(name: string): readonly string[] {
  const hierarchies = existsSync(`${CGROUP_ROOT}/cgroup.controllers`)
    ? [CGROUP_ROOT]
    : readdirSync(CGROUP_ROOT).map((entry) => join(CGROUP_ROOT, entry));
  return hierarchies.map((hierarchy) => join(hierarchy, name)).filter((folder) => existsSync(folder));
}

/** Processes in a cgroup and all below it, in every hierarchy. */
export function cgroupPids(name: string): readonly number[] {
  const pids = cgroupFolders(name)
    .flatMap(subfolders)
    .flatMap((folder) => unlessGone(() => readFileSync(join(folder, 'cgroup.procs'), 'utf8'), ''))
    .flatMap((text) => text.split('\n').filter(Boolean).map(Number));
  return [...new Set(pids)];
}

/** A container's cgroup may go, by its runtime, while it is looked at. @throws the error of `look` otherwise */
function unlessGone<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch (error) {
    // ENODEV: the file was open already when its cgroup went.
    if (error instanceof Error && 'code' in error && ['ENOENT', 'ENODEV'].includes(String(error.code)))
      return otherwise;
    throw error;
  }
}

/** A folder and all below it, innermost first. */
function subfolders(folder: string): readonly string[] {
  const inner = unlessGone(() => readdirSync(folder, { withFileTypes: true }), []).filter((entry) =>
    entry.isDirectory(),
  );
  return [...inner.flatMap((entry) => subfolders(join(folder, entry.name))), folder];
}

/** Waits until a cgroup is empty and removes it from every hierarchy. Idempotent. */
export async function removeCgroup(name: string): Promise<void> {
  await waitUntil(() => cgroupPids(name).length === 0, { what: `cgroup ${name}: end of its processes` });
  // The kernel lets an emptied cgroup go a moment later.
  for (let tries = 0; tries < 50 && cgroupFolders(name).length > 0; tries++) {
    for (const folder of cgroupFolders(name).flatMap(subfolders)) removeIfEmpty(folder);
    await sleep(20);
  }
}
