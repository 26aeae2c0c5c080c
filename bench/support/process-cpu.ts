import { readFileSync } from 'node:fs';

/** Clock ticks a second, on every architecture of Linux that Node runs on. @see sysconf(3), _SC_CLK_TCK */
const TICKS = 100;

/** CPU time that a process has used so far, seconds. `childrenS`: of children that ended and were waited for. */
type ProcessCpu = { readonly ownS: number; readonly childrenS: number };

/** Reads the CPU time of a process. */
export function readProcessCpu(pid: number | 'self'): ProcessCpu {
  return decodeProcessCpu(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

/** Decodes the text of `/proc/PID/stat`. @see proc(5): utime, stime, cutime, cstime are fields 14 to 17 */
export function decodeProcessCpu(text: string): ProcessCpu {
  // The name may hold spaces; it ends with the last parenthesis, and field 3 follows.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15).map(Number);
  return { ownS: (user + system) / TICKS, childrenS: (childUser + childSystem) / TICKS };
}
