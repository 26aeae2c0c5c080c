import { readFileSync } from 'node:fs';
import type { ClusterNode } from '../../test/cluster/cluster-node.ts';
import type { RealCluster } from '../../test/cluster/real-cluster.ts';

/** CPU time that programs have used so far, seconds. */
export type CpuTimes = Readonly<Record<(typeof PROGRAMS)[number], number>>;

/** What is told apart: `plugins` is all that containerd execs and waits for, which is CNI plugins and little else. */
const PROGRAMS = ['plugins', 'containerd', 'kubelet', 'agent', 'ipamd', 'control plane'] as const;

/** Clock ticks a second, on every architecture of Linux that Node runs on. @see sysconf(3), _SC_CLK_TCK */
const TICKS = 100;

/** Reads the CPU times of a node's programs and of those that serve all nodes. */
export async function readCpuTimes(cluster: RealCluster, node: ClusterNode): Promise<CpuTimes> {
  const containerd = statOf(node.containerd.pid);
  const daemons = [cluster.apiServer, cluster.etcd, cluster.controllerManager, cluster.scheduler];
  const ipamds = await Promise.all(cluster.nodes.map((one) => timesInside(one, 'tke-eni-ipamd')));
  return {
    plugins: containerd.childrenS,
    containerd: containerd.ownS,
    kubelet: statOf(node.kubelet.pid).ownS,
    agent: await timesInside(node, 'tke-eni-agent'),
    ipamd: ipamds.reduce((sum, one) => sum + one, 0),
    'control plane': daemons.reduce((sum, { pid }) => sum + statOf(pid).ownS, 0),
  };
}

/** Computes what was used between two readings. */
export function cpuBetween(from: CpuTimes, to: CpuTimes): CpuTimes {
  const pairs = PROGRAMS.map((program) => [program, to[program] - from[program]] as const);
  return { ...from, ...Object.fromEntries(pairs) };
}

/** Writes them in one line: `plugins 4.1, containerd 2.0`. */
export function describeCpu(times: CpuTimes): string {
  return PROGRAMS.map((program) => `${program} ${times[program].toFixed(1)}`).join(', ');
}

function statOf(pid: number) {
  return decodeStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

/** 0 when no such program runs on the node. */
async function timesInside(node: ClusterNode, program: string): Promise<number> {
  const { stdout } = await node.tryExec(['sh', '-c', `pid=$(pidof -s ${program}) && cat /proc/$pid/stat`]);
  if (stdout === '') return 0;
  const { ownS, childrenS } = decodeStat(stdout);
  return ownS + childrenS;
}

/** @see proc(5), /proc/pid/stat: utime, stime, cutime, cstime are fields 14 to 17 */
function decodeStat(text: string) {
  // The name may hold spaces; it ends with the last parenthesis, and field 3 follows.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15).map(Number);
  return { ownS: (user + system) / TICKS, childrenS: (childUser + childSystem) / TICKS };
}
