import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const CGROUP_ROOT = '/sys/fs/cgroup';

/**
 * Makes a node's own root of cgroups: two kubelets below one root end each other's Pods as orphans. `removeCgroup` of
 * test/support removes it.
 */
export function makeNodeCgroup(name: string): void {
  if (existsSync(join(CGROUP_ROOT, 'cgroup.controllers'))) {
    mkdirSync(join(CGROUP_ROOT, name), { recursive: true });
    return;
  }
  for (const hierarchy of readdirSync(CGROUP_ROOT, { withFileTypes: true })) {
    // Links such as cpu,cpuacct lead to a hierarchy that is visited anyway.
    if (!hierarchy.isDirectory() || hierarchy.name === 'unified') continue;
    mkdirSync(join(CGROUP_ROOT, hierarchy.name, name), { recursive: true });
  }
  // Nothing may run in a cpuset that has no CPUs or no memory. @see cpuset(7)
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    const root = join(CGROUP_ROOT, 'cpuset');
    if (existsSync(root)) writeFileSync(join(root, name, file), readFileSync(join(root, file)));
  }
}
