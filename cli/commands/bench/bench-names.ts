/** CNI network of all sandboxes that this command creates. */
export const BENCH_NETWORK = 'tke-eni-bench';

const CONTAINER_PREFIX = 'tkeenibench-';

/**
 * Returns the container id of a sandbox. It contains the pid of the process that creates the sandbox, so that sandboxes
 * of a process that was killed can be found. `unique` must differ between all sandboxes.
 */
export function benchContainer(pid: number, unique: string): string {
  return `${CONTAINER_PREFIX}${pid}-${unique}`;
}

/** Returns the pid of the process that created a sandbox; undefined for a container that is not of this command. */
export function creatorPid(containerId: string): number | undefined {
  if (!containerId.startsWith(CONTAINER_PREFIX)) return undefined;
  const pid = /^(\d+)-/.exec(containerId.slice(CONTAINER_PREFIX.length))?.[1];
  return pid === undefined ? undefined : Number(pid);
}
