import { execCni } from '../../test/support/exec-cni.ts';
import type { BenchScene } from '../scene.ts';
import { readProcessCpu } from '../support/process-cpu.ts';

/** What one call of each took. */
export type Sample = { readonly addMs: number; readonly delMs: number };

/** What calls at once took, first start to last exit, and the CPU time of their processes and their agent, milliseconds. */
type Burst = Sample & { readonly addCpuMs: number; readonly delCpuMs: number };

/** One side: what a runtime would exec for a Pod of its own. */
export type Side = {
  readonly conf: object;
  readonly binary: string;
  readonly cniPath: string;
  /** The agent that serves the calls, where one does. */
  readonly agentPid?: number;
};

/** Makes a sandbox, and times ADD and DEL of it. */
export async function addAndDelete(scene: BenchScene, side: Side): Promise<Sample> {
  const pod = await scene.newPod();
  const added = await call(scene, side, 'ADD', pod);
  const deleted = await call(scene, side, 'DEL', pod);
  await pod.remove();
  return { addMs: added, delMs: deleted };
}

/** Measures `count` ADDs at once and then their DELs at once. */
export async function burst(scene: BenchScene, side: Side, count: number): Promise<Burst> {
  const pods = await Promise.all(Array.from({ length: count }, () => scene.newPod()));
  const agentS = () => (side.agentPid === undefined ? 0 : readProcessCpu(side.agentPid).ownS);
  const cpuMs = () => (readProcessCpu('self').childrenS + agentS()) * 1000;
  const atOnce = async (command: 'ADD' | 'DEL') => {
    const [startedMs, startCpuMs] = [performance.now(), cpuMs()];
    await Promise.all(pods.map((pod) => call(scene, side, command, pod)));
    return { ms: performance.now() - startedMs, cpuMs: cpuMs() - startCpuMs };
  };
  const add = await atOnce('ADD');
  const del = await atOnce('DEL');
  for (const pod of pods) await pod.remove();
  return { addMs: add.ms, delMs: del.ms, addCpuMs: add.cpuMs, delCpuMs: del.cpuMs };
}

async function call(
  scene: BenchScene,
  side: Side,
  command: 'ADD' | 'DEL',
  pod: { readonly containerId: string; readonly netnsPath: string },
): Promise<number> {
  const startedMs = performance.now();
  const answer = await execCni({
    binary: side.binary,
    command,
    conf: side.conf,
    netns: scene.nodeNetnsPath,
    env: { CNI_CONTAINERID: pod.containerId, CNI_NETNS: pod.netnsPath, CNI_IFNAME: 'eth0', CNI_PATH: side.cniPath },
  });
  const tookMs = performance.now() - startedMs;
  if (answer.exitCode !== 0) throw new Error(`${side.binary} ${command} failed: ${answer.stdout}${answer.stderr}`);
  return tookMs;
}
