import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { openTestClient } from '../../test/kube/kube-scene.ts';
import { contractClient } from '../../test/kube-api/contract/client.ts';
import { freePort, startRealApi } from '../../test/kube-api/real-api.ts';
import { createTempDir } from '../../test/support/temp-dir.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import { type CloudProcess, startCloud } from '../ipamd/cloud-process.ts';
import { startIpamdProcess } from '../ipamd/ipamd-process.ts';
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts';
import { HollowCluster } from './hollow-cluster.ts';
import { callsOf, describeTraffic, Readings, type Usage } from './readings.ts';
import { type ScaleApi, startSimulatedApi } from './simulated-api.ts';

/** How large, and on what: the executables of Kubernetes in a folder, or the simulated API server. */
type ScaleSpec = {
  readonly assets: string | undefined;
  readonly nodes: number;
  readonly podsPerNode: number;
  /** Milliseconds between two Pods of a node; default: they come as fast as the API server takes them. */
  readonly everyMs?: number;
  /** Further flags of ipamd. */
  readonly flags?: readonly string[];
};

/** A part of the run. Memory is ipamd's RssAnon: at its end, and the most in it. */
export type Phase = { readonly usage: Usage; readonly memoryMib: number; readonly peakMib: number };

/** What Pods cost the cloud and the API server. */
type Supplied = {
  /** Changes that ipamd asked of the cloud. */
  readonly changes: number;
  /** Writes of NodeENIConfigs: of ipamd, refused ones among them, and of agents. */
  readonly ipamdWrites: number;
  readonly refused: number;
  readonly agentWrites: number;
};

/** What a run found. */
export type ScaleReport = {
  readonly nodes: number;
  readonly pods: number;
  /** Until every Pod runs and has its records. */
  readonly join: Phase;
  readonly joinSupply: Supplied;
  readonly rest: Phase;
  /** While `churned` Pods come and as many go, until their records are settled. */
  readonly churn: Phase;
  readonly churned: number;
  readonly churnSupply: Supplied;
  readonly restart: Phase;
  readonly restartWarmS: number;
  /** Undefined where the API server keeps nothing. */
  readonly apiRestart: { readonly phase: Phase; readonly warmS: number } | undefined;
};

const RECORDS_NOTHING = /--(?:pod-records=none|record-pods=false)\b/;
const REST_MS = 60_000;
const CHURN_MS = 60_000;
/** Pods that come each second, for a node. */
const CHURN_PER_NODE = 1 / 40;
/** The cloud lets some eight nodes join a second; records wait for the limit of ipamd's own calls. */
const JOIN_TIMEOUT_MS = 3_600_000;
const QUIET_MS = 15_000;
/** Collections that ipamd follows while it leads: of the node, ENIs, addresses, claims, subnets. */
const FOLLOWED = ['nodes', 'pods', 'nodeeniconfigs', 'vpcips', 'vpcipclaims', 'vpcenis', 'configmaps'];

/** Fills a real API server with hollow nodes and measures ipamd through its life. Owns all that it starts. */
export async function measureScale({
  assets,
  nodes,
  podsPerNode,
  everyMs,
  flags = [],
}: ScaleSpec): Promise<ScaleReport> {
  await using undo = new AsyncDisposableStack();
  const dir = undo.adopt(createTempDir('bench-scale'), (one) => one.close()).path;
  const cloud = undo.adopt(await startCloud(dir, nodes), async ({ child }) => void (await child.stop()));
  const startApi = (): Promise<ScaleApi> => (assets === undefined ? startSimulatedApi(dir) : startRealApi(assets));
  const api = undo.adopt(await startApi(), (one) => one.close());
  if (assets !== undefined)
    undo.adopt(startGarbageCollector(assets, dir, api), async (child) => void (await child.stop()));
  const proxy = undo.adopt(await startCountingProxy(dir, api), (one) => one.close());
  const { client, close } = openTestClient({ url: api.url, token: api.token, ca: api.ca });
  undo.defer(close);
  await client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'tke-eni-ipamd', namespace: 'kube-system' },
    data: { TKE_ENI_IPAMD_SUBNET_ID: 'subnet-bench000:subnet-bench001', TKE_ENI_IPAMD_VPC_ID: 'vpc-0000bench' },
  });
  const hollow = new HollowCluster({ nodes, kube: client, raw: contractClient(api.url, api.token, api.ca) });
  undo.defer(() => hollow.close());
  const open = () => openIpamd({ dir, cloud, api, proxy, flags });
  let ipamd = await open();
  undo.defer(async () => void (await ipamd.child.stop('SIGTERM', 30_000)));
  const readings = undo.adopt(new Readings({ ipamd: () => ipamd.child.pid, servers: api.pids, proxy }), (one) =>
    one.close(),
  );
  const phase = (usage: Usage): Phase => {
    const { memoryMib } = readings;
    return { usage, memoryMib, peakMib: readings.takePeakMib() };
  };
  const supplied = async (usage: Usage, before = { changes: 0, agentWrites: 0 }): Promise<Supplied> => ({
    changes: (await ipamd.changes()) - before.changes,
    ipamdWrites: callsOf(usage, 'PUT nodeeniconfigs'),
    refused: callsOf(usage, '409 PUT nodeeniconfigs'),
    agentWrites: hollow.agentWrites - before.agentWrites,
  });
  const pods = nodes * podsPerNode;
  const explain = () => `${hollow.running} of ${pods} Pods run; ${ipamd.child.stdout.slice(-2_000)}`;

  await ipamd.untilLeading();
  const joined = readings.begin();
  hollow.run();
  await hollow.fill(podsPerNode, everyMs);
  await waitUntil(() => hollow.running >= pods, {
    what: 'running Pods',
    timeoutMs: JOIN_TIMEOUT_MS,
    everyMs: 500,
    explain,
  });
  console.error(`   ${pods} Pods run after ${joined().seconds.toFixed(0)} s`);
  if (!RECORDS_NOTHING.test(flags.join(' '))) await untilRecorded(joined, pods, explain);
  const join = phase(joined());
  const joinSupply = await supplied(join.usage);
  tell('join', join);
  console.error(`   ${describeSupply(joinSupply, pods)}`);

  await untilQuiet(readings);
  readings.takePeakMib();
  const rested = readings.begin();
  await systemClock.sleep(REST_MS);
  const rest = phase(rested());
  tell('rest', rest);

  const churnedSince = readings.begin();
  const beforeChurn = { changes: await ipamd.changes(), agentWrites: hollow.agentWrites };
  const churned = await churnPods(hollow, nodes);
  await untilQuiet(readings);
  const churn = phase(churnedSince());
  const churnSupply = await supplied(churn.usage, beforeChurn);
  tell('churn', churn);
  console.error(`   ${describeSupply(churnSupply, churned)}`);

  await ipamd.child.stop('SIGTERM', 30_000);
  readings.takePeakMib();
  const startedMs = performance.now();
  ipamd = await open();
  const restarted = readings.begin();
  await ipamd.untilLeading();
  await untilFollowed(proxy, explain);
  const restartWarmS = (performance.now() - startedMs) / 1000;
  await untilQuiet(readings);
  const restart = phase(restarted());
  tell(`restart of ipamd, warm after ${restartWarmS.toFixed(1)} s`, restart);

  const found = { nodes, pods, join, joinSupply, rest, churn, churned, churnSupply, restart, restartWarmS };
  if (api.restart === undefined) return { ...found, apiRestart: undefined };
  await api.restart();
  const readyMs = performance.now();
  const apiRestarted = readings.begin();
  await untilFollowed(proxy, explain);
  const warmS = (performance.now() - readyMs) / 1000;
  await untilQuiet(readings);
  const apiRestart = { phase: phase(apiRestarted()), warmS };
  tell(`restart of the API server, warm after ${warmS.toFixed(1)} s`, apiRestart.phase);
  return { ...found, apiRestart };
}

/** Says what a Pod cost: `0.36 changes in the cloud, ...`. */
export function describeSupply({ changes, ipamdWrites, refused, agentWrites }: Supplied, pods: number): string {
  const each = (count: number) => (count / pods).toFixed(2);
  return `a Pod ${each(changes)} changes in the cloud, ${each(ipamdWrites)} writes of NodeENIConfigs by ipamd (${refused} refused in all) and ${each(agentWrites)} by agents`;
}

type OpenIpamd = {
  readonly child: Child;
  untilLeading(): Promise<void>;
  /** Changes that it asked of the cloud since it started. */
  changes(): Promise<number>;
};

type IpamdPlace = {
  readonly dir: string;
  readonly cloud: CloudProcess;
  readonly api: ScaleApi;
  readonly proxy: CountingProxy;
  readonly flags: readonly string[];
};

async function openIpamd({ dir, cloud, api, proxy, flags }: IpamdPlace): Promise<OpenIpamd> {
  const metricsAddress = `127.0.0.1:${await freePort()}`;
  const kube = { url: proxy.url, token: api.token, ca: proxy.ca };
  const child = startIpamdProcess({ dir, cloud, kube, metricsAddress, flags });
  const readMetrics = () =>
    fetch(`http://${metricsAddress}/metrics`).then(
      (answer) => answer.text(),
      () => '',
    );
  const isLeading = async () => /^tke_eni_ipamd_leader 1$/m.test(await readMetrics());
  return {
    child,
    changes: async () => {
      const counts = (await readMetrics()).matchAll(/^tke_eni_ipamd_node_calls_total\{.*\} (\d+)$/gm);
      return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
    },
    untilLeading: async () => {
      const explain = () => `${child.stdout.slice(-2_000)}${child.stderr}`;
      await waitUntil(isLeading, { what: 'an ipamd that leads', timeoutMs: 120_000, everyMs: 250, explain });
    },
  };
}

/** The part of the controller manager that deletes claims with their Pods. */
function startGarbageCollector(assets: string, dir: string, api: ScaleApi): Child {
  const kubeconfig = join(dir, 'garbage-collector.conf');
  writeFileSync(kubeconfig, renderKubeconfig(api));
  const flags = ['--controllers=garbage-collector-controller', '--leader-elect=false', '--secure-port=0'];
  return new Child([join(assets, 'kube-controller-manager'), `--kubeconfig=${kubeconfig}`, ...flags], {
    env: childEnv(),
  });
}

async function churnPods(hollow: HollowCluster, nodes: number): Promise<number> {
  const count = Math.round((nodes * CHURN_PER_NODE * CHURN_MS) / 1000);
  for (let pod = 0; pod < count; pod++) {
    await Promise.all([hollow.endOldest(), hollow.start(pod % nodes), systemClock.sleep(CHURN_MS / count)]);
  }
  await hollow.settle();
  return count;
}

async function untilRecorded(usage: () => Usage, pods: number, explain: () => string): Promise<void> {
  await waitUntil(() => callsOf(usage(), 'POST vpcips') >= pods, {
    what: 'records of all Pods',
    timeoutMs: JOIN_TIMEOUT_MS,
    everyMs: 1_000,
    explain: () => `${callsOf(usage(), 'POST vpcips')} of ${pods}; ${explain()}`,
  });
}

/** Waits until ipamd has every collection that it follows. */
async function untilFollowed(proxy: CountingProxy, explain: () => string): Promise<void> {
  await waitUntil(
    () => {
      const open = new Set(proxy.openWatches());
      return FOLLOWED.every((plural) => open.has(`WATCH ${plural}`));
    },
    {
      what: 'a watch of every collection',
      timeoutMs: 300_000,
      everyMs: 50,
      explain: () => `open are ${proxy.openWatches().join(', ')}; ${explain()}`,
    },
  );
}

/** Waits until ipamd writes no more than a lock. */
async function untilQuiet(readings: Readings): Promise<void> {
  for (let look = 0; look < 40; look++) {
    const since = readings.begin();
    await systemClock.sleep(QUIET_MS);
    if (callsOf(since(), 'POST', 'PUT', 'PATCH', 'DELETE') <= 4) return;
  }
}

function tell(what: string, { usage, memoryMib, peakMib }: Phase): void {
  console.error(
    `   ${what}: ${usage.seconds.toFixed(1)} s, CPU ${usage.cpuS.toFixed(1)} s, RssAnon ${memoryMib.toFixed(0)} MiB (peak ${peakMib.toFixed(0)}); ${describeTraffic(usage, 6)}`,
  );
}
