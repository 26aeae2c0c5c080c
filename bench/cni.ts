import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { addAndDelete, burst, type Sample, type Side } from './cni/sides.ts';
import { type BenchRow, benchRow, median } from './row.ts';
import { openBenchScene } from './scene.ts';

/** How often ADD and DEL of one Pod are measured on each side. */
const ROUNDS = 25;
/** As often before, unmeasured: an agent has run for days, and V8 compiles what runs often. */
const WARM_ROUNDS = 25;
/** How often thirty ADDs at once are measured on each side. */
const BURSTS = 5;
const BURST_PODS = 30;

/**
 * Measures whole ADD and DEL calls, process start to exit, of ours against Debian's ptp with host-local in a node of its
 * own, one after the other in turn; then thirty ADDs at once, and thirty DELs. Ours starts the launcher for each, theirs two programs in Go.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  await using scene = await openBenchScene({ ips: BURST_PODS * 2 + 4 });
  mkdirSync(join(scene.dir, 'host-local'));
  const { runtime, peerRuntime, plugin: binary, binDir: cniPath } = scene;
  const ours: Side = { runtime, conf: scene.conf(), binary, cniPath, agentPid: scene.agent.pid };
  const ptp: Side = {
    runtime: peerRuntime,
    conf: ptpConf(scene.dir),
    binary: '/usr/lib/cni/ptp',
    cniPath: '/usr/lib/cni',
  };

  const samples = { ours: [] as Sample[], ptp: [] as Sample[] };
  for (let round = 0; round < WARM_ROUNDS; round++) await addAndDelete(scene, ours);
  for (let round = 0; round < ROUNDS; round++) {
    samples.ours.push(await addAndDelete(scene, ours));
    samples.ptp.push(await addAndDelete(scene, ptp));
  }
  type Burst = Awaited<ReturnType<typeof burst>>;
  const bursts = { ours: [] as Burst[], ptp: [] as Burst[] };
  for (let round = 0; round < BURSTS; round++) {
    bursts.ours.push(await burst(scene, ours, BURST_PODS));
    bursts.ptp.push(await burst(scene, ptp, BURST_PODS));
  }

  const peerName = 'ptp + host-local';
  const row = (name: string, mine: readonly number[], theirs: readonly number[], extra: string) =>
    benchRow({ suite: 'cni', case: name, ours: median(mine), peer: median(theirs), peerName, unit: 'ms', extra });
  const atOnce = `${BURST_PODS} at once, median of ${BURSTS}, first start to last exit`;
  const cpu = `CPU time of the processes that a runtime starts, ours with that of the agent; ${BURST_PODS} at once, median of ${BURSTS}`;
  const addCpuMs = (one: Burst): number => one.addCpuMs;
  const delCpuMs = (one: Burst): number => one.delCpuMs;
  return [
    row('add-one', samples.ours.map(addMs), samples.ptp.map(addMs), `median of ${ROUNDS}, process start to exit`),
    row('del-one', samples.ours.map(delMs), samples.ptp.map(delMs), `median of ${ROUNDS}, process start to exit`),
    row('add-thirty', bursts.ours.map(addMs), bursts.ptp.map(addMs), atOnce),
    row('del-thirty', bursts.ours.map(delMs), bursts.ptp.map(delMs), atOnce),
    row('add-thirty-cpu', bursts.ours.map(addCpuMs), bursts.ptp.map(addCpuMs), cpu),
    row('del-thirty-cpu', bursts.ours.map(delCpuMs), bursts.ptp.map(delCpuMs), cpu),
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
