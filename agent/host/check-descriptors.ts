/** Descriptors that the ports may take: 128 of metrics and health, 64 of `--listen-address`. */
const PORTS = 192;
/** The reserve for the agent's own files, ADD, DEL and repair. With full ports, 223 were open during an ADD. */
const RESERVE = 832;

/**
 * Says what is wrong when so few descriptors are allowed that connections to the ports could leave none for ADD, DEL
 * and repair; undefined when enough are allowed.
 * @param limits Content of `/proc/self/limits`. Node.js has raised the soft limit to the hard one. @see getrlimit(2)
 */
export function checkDescriptors(limits: string): string | undefined {
  const allowed = /^Max open files +(\S+)/m.exec(limits)?.[1];
  if (allowed === undefined || allowed === 'unlimited' || Number(allowed) >= PORTS + RESERVE) return undefined;
  return `${allowed} file descriptors are allowed, ${PORTS + RESERVE} are needed at most: raise the limit (LimitNOFILE of the container runtime)`;
}
