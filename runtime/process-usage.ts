/** Resource usage of the process. */
export type ProcessUsage = { readonly residentBytes: number; readonly heapBytes: number; readonly cpuSeconds: number };

const MICROSECONDS = 1e6;

/** Reads the resource usage of a process, which is `process`. */
export function readUsage(host: Pick<NodeJS.Process, 'memoryUsage' | 'cpuUsage'>): ProcessUsage {
  const { rss, heapUsed } = host.memoryUsage();
  const { user, system } = host.cpuUsage();
  return { residentBytes: rss, heapBytes: heapUsed, cpuSeconds: (user + system) / MICROSECONDS };
}
