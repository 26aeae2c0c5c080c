/** CNI network of all sandboxes of this command. */
export const BENCH_NETWORK = 'tke-eni-bench';

const CONTAINER_PREFIX = 'tkeenibench-';

/** Names a sandbox after the process that makes it, so that those of a dead one are known; `unique` as no other run has it. Pure. */
export function benchContainer(pid: number, unique: string): string {
  return `${CONTAINER_PREFIX}${pid}-${unique}`;
}

/** Reads who made a sandbox; undefined when it is not of this command. Pure. */
export function makerOfContainer(containerId: string): number | undefined {
  if (!containerId.startsWith(CONTAINER_PREFIX)) return undefined;
  const pid = /^(\d+)-/.exec(containerId.slice(CONTAINER_PREFIX.length))?.[1];
  return pid === undefined ? undefined : Number(pid);
}
