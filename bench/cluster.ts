/**
 * Measures what Pods in a real cluster wait for: fifty of them come up on one node at once and go at once, with our plugin
 * and with the reference ptp + host-local, on two nodes of one cluster, in turn. The cloud's part is done before: the
 * addresses are there, as on a node with a warm pool; the peer has no cloud to wait for.
 */
import { awaitServing } from '../test/cluster/deploy.ts';
import { findKubeAssets } from '../test/cluster/kube-assets.ts';
import { type RealCluster, startRealCluster } from '../test/cluster/real-cluster.ts';
import { waitUntil } from '../test/support/wait-until.ts';
import { describeCpu } from './cluster/cpu-times.ts';
import { type Contestant, PODS_AT_ONCE, type Round, runRound } from './cluster/fifty.ts';
import { measureStarts } from './cluster/plugin-starts.ts';
import { sumSamples } from './cluster/prometheus-text.ts';
import { renderRows } from './cluster/render-rows.ts';
import type { BenchRow } from './row.ts';

const SUITE = 'cluster';
/** The first one of each is not counted: caches fill. */
const ROUNDS = 6;
/** Free addresses that the node holds: more than one round takes. */
const WARM = 60;
/** As long as all of a round's addresses cool, less than the peer's round. */
const COOLDOWN = '5s';
/** As ipamd has it when nobody says otherwise; the harness wants records sooner. */
const RECORD_DELAY = '10s';

const OURS: Contestant = { node: 'node1', eniIps: 1 };
const PEER: Contestant = { node: 'node2', eniIps: 0 };

/** Runs all cases; without the executables of Kubernetes there is no row. Of the rounds all but the first count. */
export async function runSuite(rounds = ROUNDS): Promise<readonly BenchRow[]> {
  if (findKubeAssets().missing.length > 0) {
    console.error(`${SUITE}: not run: KUBE_ASSETS names no folder with the executables of Kubernetes`);
    return [];
  }
  const cluster = await startRealCluster({
    nodes: [
      { name: OURS.node, cores: 16 },
      { name: PEER.node, cni: 'ptp' },
    ],
  });
  try {
    // As super nodes, which have no kernel of their own: no agent goes there.
    await cluster.kubectl('label', 'node', PEER.node, '--overwrite', 'node.kubernetes.io/instance-type=eklet');
    const warm = String(WARM);
    await cluster.deploy({
      until: 'applied',
      ipamdSettings: { 'ip-min-warm-target': warm, 'ip-max-warm-target': warm, 'record-delay': RECORD_DELAY },
      agentSettings: { 'ip-cooldown': COOLDOWN },
    });
    await awaitServing(cluster, [OURS.node]);
    await cluster.awaitReady([PEER.node]);
    return await measure(cluster, rounds);
  } finally {
    await cluster.close();
  }
}

async function measure(cluster: RealCluster, count: number): Promise<readonly BenchRow[]> {
  const rounds = { ours: [] as Round[], peer: [] as Round[] };
  for (let round = 0; round < count; round++) {
    for (const contestant of round % 2 === 0 ? [OURS, PEER] : [PEER, OURS]) {
      if (contestant === OURS) await awaitWarm(cluster);
      const result = await runRound(cluster, contestant);
      if (round > 0) (contestant === OURS ? rounds.ours : rounds.peer).push(result);
      console.error(`${contestant.node}: ${describeRound(result)}`);
    }
  }
  return renderRows(rounds, await describeStarts(cluster));
}

/** Waits until the node has addresses for a round. */
async function awaitWarm(cluster: RealCluster): Promise<void> {
  const node = cluster.node(OURS.node);
  let free = 0;
  await waitUntil(
    async () => {
      const text = await node.exec(['busybox', 'wget', '-q', '-O', '-', 'http://127.0.0.1:61680/metrics']);
      free = sumSamples(text, 'tke_eni_pool_addresses', { state: 'free' });
      return free >= PODS_AT_ONCE;
    },
    { what: 'free addresses', timeoutMs: 120_000, everyMs: 500, explain: () => `${free} of ${PODS_AT_ONCE}` },
  );
}

/** Says what starting the plugins alone costs: the floor of a program on Node. */
async function describeStarts(cluster: RealCluster): Promise<string> {
  const plugins = ['/opt/cni/bin/tke-route-eni', '/usr/lib/cni/ptp', '/usr/lib/cni/host-local'];
  const starts = await measureStarts(cluster.node(OURS.node), plugins);
  const told = plugins.map((plugin) => {
    const start = starts.get(plugin);
    return `${plugin.split('/').at(-1)} ${start?.wallMs.toFixed(0)} ms (CPU ${start?.cpuMs.toFixed(0)} ms)`;
  });
  return `starts alone (VERSION): ${told.join(', ')}`;
}

function describeRound({ upS, downS, latencies, upCpu, downCpu }: Round): string {
  const { runMs, stopMs, setupMs, teardownMs } = latencies;
  const ms = [runMs, setupMs, stopMs, teardownMs].map((value) => value.toFixed(0)).join(', ');
  return `up ${upS.toFixed(1)} s, down ${downS.toFixed(1)} s; run, setup, stop, teardown ${ms} ms\n  CPU seconds up: ${describeCpu(upCpu)}; down: ${describeCpu(downCpu)}`;
}
