import type { ClusterNode } from '../../test/cluster/cluster-node.ts';
import type { RealCluster } from '../../test/cluster/real-cluster.ts';
import { decodeProcessCpu, readProcessCpu } from '../support/process-cpu.ts';

/** CPU time that programs have used so far, seconds. */
export type CpuTimes = Readonly<Record<(typeof PROGRAMS)[number], number>>;

/** What is told apart: `plugins` is all that containerd execs and waits for, which is CNI plugins and little else. */
export const PROGRAMS = ['plugins', 'containerd', 'kubelet', 'agent', 'ipamd', 'control plane'] as const;

/** Reads the CPU times of a node's programs and of those that serve all nodes. */
export async function readCpuTimes(cluster: RealCluster, node: ClusterNode): Promise<CpuTimes> {
  const containerd = readProcessCpu(node.containerd.pid);
  const daemons = [cluster.apiServer, cluster.etcd, cluster.controllerManager, cluster.scheduler];
  const ipamds = await Promise.all(cluster.nodes.map((one) => timesInside(one, 'tke-eni-ipamd')));
  return {
    plugins: containerd.childrenS,
    containerd: containerd.ownS,
    kubelet: readProcessCpu(node.kubelet.pid).ownS,
    agent: await timesInside(node, 'tke-eni-agent'),
    ipamd: ipamds.reduce((sum, one) => sum + one, 0),
    'control plane': daemons.reduce((sum, { pid }) => sum + readProcessCpu(pid).ownS, 0),
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

/** 0 when no such program runs on the node. */
async function timesInside(node: ClusterNode, program: string): Promise<number> {
  const { stdout } = await node.tryExec(['sh', '-c', `pid=$(pidof -s ${program}) && cat /proc/$pid/stat`]);
  if (stdout === '') return 0;
  const { ownS, childrenS } = decodeProcessCpu(stdout);
  return ownS + childrenS;
}
