import type { BenchScene } from '../scene.ts';
import { readProcessCpu } from '../support/process-cpu.ts';
import type { CniRuntime, RuntimeCall } from './cni-runtime.ts';

/** What one call of each took. */
export type Sample = { readonly addMs: number; readonly delMs: number };

/** What calls at once took, first start to last exit, and the CPU time of their processes and their agent, milliseconds. */
type Burst = Sample & { readonly addCpuMs: number; readonly delCpuMs: number };

/** One side: what a runtime would exec for a Pod of its own. */
export type Side = {
  /** It starts the executables in the node of this side. */
  readonly runtime: CniRuntime;
  readonly conf: object;
  readonly binary: string;
  readonly cniPath: string;
  /** The agent that serves the calls, where one does. */
  readonly agentPid?: number;
};

/** Makes a sandbox, and times ADD and DEL of it. */
export async function addAndDelete({ newPod }: Pick<BenchScene, 'newPod'>, side: Side): Promise<Sample> {
  const pod = await newPod();
  const added = await side.runtime.run([callOf(side, 'ADD', pod)]);
  const deleted = await side.runtime.run([callOf(side, 'DEL', pod)]);
  await pod.remove();
  return { addMs: added.ms, delMs: deleted.ms };
}

/** Measures `count` ADDs at once and then their DELs at once. */
export async function burst({ newPod }: Pick<BenchScene, 'newPod'>, side: Side, count: number): Promise<Burst> {
  const pods = await Promise.all(Array.from({ length: count }, newPod));
  const agentMs = () => (side.agentPid === undefined ? 0 : readProcessCpu(side.agentPid).ownS * 1000);
  const atOnce = async (command: 'ADD' | 'DEL') => {
    const startCpuMs = agentMs();
    const { ms, cpuMs } = await side.runtime.run(pods.map((pod) => callOf(side, command, pod)));
    return { ms, cpuMs: cpuMs + agentMs() - startCpuMs };
  };
  const add = await atOnce('ADD');
  const del = await atOnce('DEL');
  for (const pod of pods) await pod.remove();
  return { addMs: add.ms, delMs: del.ms, addCpuMs: add.cpuMs, delCpuMs: del.cpuMs };
}

function callOf(
  { binary, conf, cniPath }: Side,
  command: 'ADD' | 'DEL',
  pod: { readonly containerId: string; readonly netnsPath: string },
): RuntimeCall {
  const { containerId, netnsPath } = pod;
  const env = {
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    CNI_COMMAND: command,
    CNI_CONTAINERID: containerId,
    CNI_NETNS: netnsPath,
    CNI_IFNAME: 'eth0',
    CNI_PATH: cniPath,
  };
  return { binary, conf, env };
}
