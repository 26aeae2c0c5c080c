/** CNI network of all sandboxes of this command. */
export const BENCH_NETWORK = 'tke-eni-bench';

/** Namespaces and sandboxes are named after the process that made them, so that those of a dead one are known. */
const NETNS_PREFIX = 'tke-eni-bench-';
const CONTAINER_PREFIX = 'tkeenibench-';

/** Names the namespace of a process's sandbox, or of its routes. Pure. */
export function benchNetns(pid: number, what: string): string {
  return `${NETNS_PREFIX}${pid}-${what}`;
}

/** Names a sandbox; `unique` as no other run has it. Pure. */
export function benchContainer(pid: number, unique: string): string {
  return `${CONTAINER_PREFIX}${pid}-${unique}`;
}

/** Reads who made a namespace; undefined when it is not of this command. Pure. */
export function makerOfNetns(name: string): number | undefined {
  return makerOf(name, NETNS_PREFIX);
}

/** Reads who made a sandbox; undefined when it is not of this command. Pure. */
export function makerOfContainer(containerId: string): number | undefined {
  return makerOf(containerId, CONTAINER_PREFIX);
}

function makerOf(name: string, prefix: string): number | undefined {
  const pid = name.startsWith(prefix) ? /^(\d+)-/.exec(name.slice(prefix.length))?.[1] : undefined;
  return pid === undefined ? undefined : Number(pid);
}
