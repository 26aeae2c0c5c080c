import { measureChurn } from './ipamd/churn.ts';
import { measureCiliumPools } from './ipamd/cilium.ts';
import { type JoinReport, measureJoin, TWENTY_PERCENT } from './ipamd/join.ts';
import { measureProcesses } from './ipamd/processes.ts';
import { measureTrickle, type TrickleReport } from './ipamd/trickle.ts';
import { type BenchRow, benchRow } from './row.ts';

const NODES = 5_000;
const CILIUM_NODES = 1_000;
const TRICKLE = { nodes: 60, podsPerNode: 30, everyMs: 2_000 } as const;
const BOUND = 'bound';

/**
 * Measures ipamd: joins and an hour of churn on the virtual clock, in process, against the closed form of
 * `lower-bound.ts`; then one packaged process with a thousand nodes. Fails on any address or ENI that cloud and objects do
 * not agree on.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const clean = await measureJoin(NODES, []);
  console.error(
    `   join: ${clean.seconds} s of ${clean.leastSeconds} s, ${Math.round(clean.wallSeconds)} s of this machine`,
  );
  const faulty = await measureJoin(NODES, TWENTY_PERCENT);
  console.error(`   with faults: ${faulty.seconds} s, ${Math.round(faulty.wallSeconds)} s of this machine`);
  const churn = await measureChurn();
  console.error(`   churn: ${churn.calls} calls, ${Math.round(churn.wallSeconds)} s of this machine`);
  const trickle = await measureTrickle(TRICKLE);
  const oneByOne = await measureTrickle({ ...TRICKLE, gatherMs: 0 });
  console.error(`   trickle: ${trickle.changesPerPod.toFixed(2)} calls a Pod of ${oneByOne.changesPerPod.toFixed(2)}`);
  const cilium = await measureCiliumPools(CILIUM_NODES);
  console.error(`   pools of Cilium: ${cilium.seconds} s, ${Math.round(cilium.wallSeconds)} s of this machine`);
  failOnLeaks({ join: clean.leaks, faults: faulty.leaks, churn: churn.leaks, cilium: cilium.leaks });
  failOnLeaks({ trickle: trickle.leaks, oneByOne: oneByOne.leaks });
  return [
    ...joinRows(clean, faulty),
    ...churnRows(churn),
    ...trickleRows(trickle, oneByOne),
    ...ciliumRows(cilium),
    ...(await processRows()),
  ];
}

function joinRows(clean: JoinReport, faulty: JoinReport): readonly BenchRow[] {
  const own = { suite: 'ipamd', peerName: BOUND } as const;
  const { callsPerNode, changesPerNode, fewestPerNode, ipamdWritesPerNode, agentWritesPerNode } = clean;
  return [
    benchRow({
      ...own,
      case: 'join-5000',
      ours: clean.seconds,
      peer: clean.leastSeconds,
      unit: 's',
      extra: `virtual seconds; ${factor(clean)} x the bound (at most 1.15); 8 cores, 30 Pods and 5 warm addresses a node; 0 leaks`,
    }),
    benchRow({
      ...own,
      case: 'join-faults',
      ours: faulty.seconds,
      peer: faulty.leastSeconds,
      unit: 's',
      extra: `the same with 20 % faults: ${factor(faulty)} x the bound (at most 2); ${faulty.callsPerNode.toFixed(2)} calls a node; 0 leaks`,
    }),
    benchRow({
      ...own,
      case: 'join-calls',
      ours: callsPerNode,
      peer: fewestPerNode,
      unit: 'calls',
      extra: `a node, descriptions included; ${changesPerNode.toFixed(2)} of them change something`,
    }),
    benchRow({
      ...own,
      case: 'join-writes',
      ours: ipamdWritesPerNode + agentWritesPerNode,
      peer: WRITES_BOUND,
      unit: 'writes',
      extra: `a node: ${ipamdWritesPerNode.toFixed(1)} of ipamd, ${agentWritesPerNode.toFixed(1)} of the agent`,
    }),
  ];
}

/** One to record and one to conclude each of six calls, the object itself, a taint; the agent's answers to each. */
const WRITES_BOUND = 20;

function churnRows(churn: Awaited<ReturnType<typeof measureChurn>>): readonly BenchRow[] {
  const { podsStarted, calls, changes, nodes, late, writesPerPod } = churn;
  return [
    benchRow({
      suite: 'ipamd',
      case: 'churn-hour',
      ours: calls,
      peer: podsStarted,
      peerName: 'one per Pod',
      unit: 'calls',
      extra: `an hour of 1,000 Pods a minute on ${nodes} nodes: ${changes} calls change something, ${writesPerPod.toFixed(2)} writes a Pod, ${late} Pods waited over a minute, 0 leaks`,
    }),
  ];
}

function trickleRows(gathered: TrickleReport, oneByOne: TrickleReport): readonly BenchRow[] {
  const own = { suite: 'ipamd', peerName: 'not gathered' } as const;
  const { assignsPerPod, ipamdWritesPerPod, agentWritesPerPod, waited } = gathered;
  const { nodes, podsPerNode, everyMs } = TRICKLE;
  return [
    benchRow({
      ...own,
      case: 'trickle-calls',
      ours: gathered.changesPerPod,
      peer: oneByOne.changesPerPod,
      unit: 'calls',
      extra: `that change something, a Pod; ${assignsPerPod.toFixed(2)} assign addresses; ${podsPerNode} Pods on each of ${nodes} nodes, one every ${everyMs / 1_000} s; ${waited} Pods waited (peer: ${oneByOne.waited})`,
    }),
    benchRow({
      ...own,
      case: 'trickle-writes',
      ours: ipamdWritesPerPod + agentWritesPerPod,
      peer: oneByOne.ipamdWritesPerPod + oneByOne.agentWritesPerPod,
      unit: 'writes',
      extra: `of NodeENIConfigs, a Pod: ${ipamdWritesPerPod.toFixed(2)} of ipamd, ${agentWritesPerPod.toFixed(2)} of the agent`,
    }),
  ];
}

function ciliumRows(report: Awaited<ReturnType<typeof measureCiliumPools>>): readonly BenchRow[] {
  const { nodes, seconds, changesPerNode, fewestPerNode, poolWritesPerNode, necWritesPerNode } = report;
  const own = { suite: 'ipamd', peerName: BOUND } as const;
  return [
    benchRow({
      ...own,
      case: 'cilium-calls',
      ours: changesPerNode,
      peer: fewestPerNode,
      unit: 'calls',
      extra: `that change something, a node; ${nodes} CiliumNodes with 30 addresses each, full after ${seconds.toFixed(0)} virtual seconds; 0 leaks`,
    }),
    benchRow({
      ...own,
      case: 'cilium-writes',
      ours: poolWritesPerNode,
      peer: 1,
      unit: 'writes',
      extra: `of a CiliumNode: the fewest would leave it empty until the last address has come; ${necWritesPerNode.toFixed(1)} of its NodeENIConfig`,
    }),
  ];
}

async function processRows(): Promise<readonly BenchRow[]> {
  const report = await measureProcesses();
  const own = { suite: 'ipamd', peerName: BOUND } as const;
  const { nodes, rssMib, peakMib, joinSeconds, joinCpuSeconds, idleCpuPercent, pods, writesPerPod } = report;
  return [
    benchRow({
      ...own,
      case: 'rss-1000',
      ours: rssMib,
      peer: 250,
      unit: 'MiB',
      extra: `VmRSS of the packaged process with ${nodes} nodes; peak ${peakMib.toFixed(0)} MiB`,
    }),
    benchRow({
      ...own,
      case: 'cpu-1000',
      ours: joinCpuSeconds,
      peer: joinSeconds,
      unit: 's',
      extra: `CPU for ${nodes} nodes that joined in ${joinSeconds.toFixed(0)} s (peer: that time); ${idleCpuPercent.toFixed(1)} % of a processor at rest`,
    }),
    benchRow({
      ...own,
      case: 'writes-per-pod',
      ours: writesPerPod,
      peer: 4,
      unit: 'writes',
      extra: `of ipamd, for ${pods} Pods that came and went: claim and address written, address deleted`,
    }),
  ];
}

function factor({ seconds, leastSeconds }: JoinReport): string {
  return (seconds / leastSeconds).toFixed(2);
}

function failOnLeaks(leaks: Readonly<Record<string, readonly string[]>>): void {
  const found = Object.entries(leaks).flatMap(([name, list]) => list.map((leak) => `${name}: ${leak}`));
  if (found.length > 0) throw new Error(`${found.length} leaks:\n  ${found.slice(0, 20).join('\n  ')}`);
}
