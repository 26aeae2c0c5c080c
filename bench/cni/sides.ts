import { execCni } from '../../test/support/exec-cni.ts';
import type { BenchScene } from '../scene.ts';

/** What one call of each took. */
export type Sample = { readonly addMs: number; readonly delMs: number };

/** One side: what a runtime would exec for a Pod of its own. */
export type Side = {
  readonly conf: object;
  readonly binary: string;
  readonly cniPath: string;
};

/** Makes a sandbox, and times ADD and DEL of it. */
export async function addAndDelete(scene: BenchScene, side: Side): Promise<Sample> {
  const pod = await scene.newPod();
  const added = await call(scene, side, 'ADD', pod);
  const deleted = await call(scene, side, 'DEL', pod);
  await pod.remove();
  return { addMs: added, delMs: deleted };
}

/** Times `count` ADDs at once and then their DELs at once, each from the first start to the last exit. */
export async function burst(scene: BenchScene, side: Side, count: number): Promise<Sample> {
  const pods = await Promise.all(Array.from({ length: count }, () => scene.newPod()));
  const atOnce = async (command: 'ADD' | 'DEL'): Promise<number> => {
    const startedMs = performance.now();
    await Promise.all(pods.map((pod) => call(scene, side, command, pod)));
    return performance.now() - startedMs;
  };
  const addMs = await atOnce('ADD');
  const delMs = await atOnce('DEL');
  for (const pod of pods) await pod.remove();
  return { addMs, delMs };
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
