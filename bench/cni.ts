import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { execCni } from '../test/support/exec-cni.ts';
import { type BenchRow, benchRow, median } from './row.ts';
import type { BenchScene } from './scene.ts';
import { openBenchScene } from './scene.ts';

/** How often ADD and DEL of one Pod are measured on each side. */
const ROUNDS = 25;
/** How often thirty ADDs at once are measured on each side. */
const BURSTS = 5;
const BURST_PODS = 30;

type Sample = { readonly addMs: number; readonly delMs: number };

/** One side: what a runtime would exec for a Pod of its own. */
type Side = {
  readonly conf: object;
  readonly binary: string;
  readonly cniPath: string;
};

/**
 * Measures whole ADD and DEL calls, process start to exit, of ours against Debian's ptp with host-local in the same
 * node, one after the other in turn; then thirty ADDs at once. Ours starts a Node process for each, theirs two of Go.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  await using scene = await openBenchScene({ ips: BURST_PODS * 2 + 4 });
  mkdirSync(join(scene.dir, 'host-local'));
  const ours: Side = { conf: scene.conf(), binary: scene.plugin, cniPath: scene.binDir };
  const ptp: Side = { conf: ptpConf(scene.dir), binary: '/usr/lib/cni/ptp', cniPath: '/usr/lib/cni' };

  const samples = { ours: [] as Sample[], ptp: [] as Sample[] };
  for (let round = 0; round < ROUNDS; round++) {
    samples.ours.push(await addAndDelete(scene, ours));
    samples.ptp.push(await addAndDelete(scene, ptp));
  }
  const bursts = { ours: [] as number[], ptp: [] as number[] };
  for (let round = 0; round < BURSTS; round++) {
    bursts.ours.push(await burst(scene, ours));
    bursts.ptp.push(await burst(scene, ptp));
  }

  const peerName = 'ptp + host-local';
  const row = (name: string, mine: readonly number[], theirs: readonly number[], extra: string) =>
    benchRow({ suite: 'cni', case: name, ours: median(mine), peer: median(theirs), peerName, unit: 'ms', extra });
  return [
    row('add-one', samples.ours.map(addMs), samples.ptp.map(addMs), `median of ${ROUNDS}, process start to exit`),
    row('del-one', samples.ours.map(delMs), samples.ptp.map(delMs), `median of ${ROUNDS}, process start to exit`),
    row('add-thirty', bursts.ours, bursts.ptp, `${BURST_PODS} at once, median of ${BURSTS}, first start to last exit`),
  ];
}

const addMs = (sample: Sample): number => sample.addMs;
const delMs = (sample: Sample): number => sample.delMs;

function ptpConf(dir: string): object {
  return {
    cniVersion: '1.0.0',
    name: 'peer',
    type: 'ptp',
    ipMasq: false,
    ipam: {
      type: 'host-local',
      dataDir: join(dir, 'host-local'),
      ranges: [[{ subnet: '10.99.0.0/16' }]],
      routes: [{ dst: '0.0.0.0/0' }],
    },
  };
}

async function addAndDelete(scene: BenchScene, side: Side): Promise<Sample> {
  const pod = await scene.newPod();
  const added = await call(scene, side, 'ADD', pod);
  const deleted = await call(scene, side, 'DEL', pod);
  await pod.remove();
  return { addMs: added, delMs: deleted };
}

async function burst(scene: BenchScene, side: Side): Promise<number> {
  const pods = await Promise.all(Array.from({ length: BURST_PODS }, () => scene.newPod()));
  const startedMs = performance.now();
  await Promise.all(pods.map((pod) => call(scene, side, 'ADD', pod)));
  const tookMs = performance.now() - startedMs;
  for (const pod of pods) {
    await call(scene, side, 'DEL', pod);
    await pod.remove();
  }
  return tookMs;
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
