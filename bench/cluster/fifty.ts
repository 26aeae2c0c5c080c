import type { KubeObject } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import { isObject } from '../../sim/support/netns.ts';
import { podManifest } from '../../test/cluster/pods.ts';
import type { RealCluster } from '../../test/cluster/real-cluster.ts';
import { type CpuTimes, cpuBetween, readCpuTimes } from './cpu-times.ts';
import { type Latencies, readLatencies, sandboxTotals } from './latencies.ts';

/** Pods that come and go at once. */
export const PODS_AT_ONCE = 50;

/** A node and how its Pods get a network. */
export type Contestant = {
  readonly node: string;
  /** Addresses of shared ENIs that each Pod asks for. */
  readonly eniIps: 0 | 1;
};

/** What one round of a contestant took. */
export type Round = {
  /** From the first Pod's creation to the last one's readiness, seconds. */
  readonly upS: number;
  /** From the first deletion to the end of the last Pod's object, which comes after its sandbox is gone; seconds. */
  readonly downS: number;
  /** Means of this round. */
  readonly latencies: Latencies;
  readonly upCpu: CpuTimes;
  readonly downCpu: CpuTimes;
};

const NAMESPACE = 'default';
const ROUND_TIMEOUT_MS = 240_000;

/** Lets fifty Pods come up on a node at once, and go at once. */
export async function runRound(cluster: RealCluster, { node, eniIps }: Contestant): Promise<Round> {
  const pods = Array.from(
    { length: PODS_AT_ONCE },
    (_, index): KubeObject =>
      // Bound by us: the scheduler's pace is not what is measured.
      JSON.parse(podManifest(`${node}-${index}`, { eniIps, labels: { app: node }, spec: { nodeName: node } })),
  );
  const cpu = () => readCpuTimes(cluster, cluster.node(node));
  const [before, cpuBefore] = [await sandboxTotals(cluster, node), await cpu()];
  const upS = await timed(() => bringUp(cluster, node, pods));
  const [cpuUp, between] = [await cpu(), await sandboxTotals(cluster, node)];
  const cpuAgain = await cpu();
  const downS = await timed(() => takeDown(cluster, node, pods));
  const [cpuDown, after] = [await cpu(), await sandboxTotals(cluster, node)];
  return {
    upS,
    downS,
    latencies: readLatencies(before, between, after),
    upCpu: cpuBetween(cpuBefore, cpuUp),
    downCpu: cpuBetween(cpuAgain, cpuDown),
  };
}

async function bringUp(cluster: RealCluster, app: string, pods: readonly KubeObject[]): Promise<void> {
  const create = (pod: KubeObject) =>
    cluster.admin.create(PODS, { ...pod, metadata: { ...pod.metadata, namespace: NAMESPACE } });
  await untilSeen(
    cluster,
    app,
    () => Promise.all(pods.map(create)),
    (seen) => seen.size === pods.length && seen.values().every(isReady),
  );
}

async function takeDown(cluster: RealCluster, app: string, pods: readonly KubeObject[]): Promise<void> {
  const remove = ({ metadata: { name } }: KubeObject) => cluster.admin.delete(PODS, { namespace: NAMESPACE, name });
  await untilSeen(
    cluster,
    app,
    () => Promise.all(pods.map(remove)),
    (seen) => seen.size === 0,
  );
}

/** Starts something and follows the Pods of a label until they are as wanted. @throws Error when it takes too long */
async function untilSeen(
  cluster: RealCluster,
  app: string,
  start: () => Promise<unknown>,
  isEnd: (seen: ReadonlyMap<string, KubeObject>) => boolean,
): Promise<void> {
  const query = { namespace: NAMESPACE, labelSelector: `app=${app}` };
  const stop = new AbortController();
  const signal = AbortSignal.any([AbortSignal.timeout(ROUND_TIMEOUT_MS), stop.signal]);
  let page = await cluster.admin.listPage(PODS, query);
  const started = start();
  const follow = async () => {
    // A server ends watches now and then.
    for (;;) {
      const seen = byName(page.items);
      if (isEnd(seen)) return;
      const { resourceVersion } = page;
      for await (const event of cluster.admin.watch(PODS, { ...query, resourceVersion }, signal)) {
        if (event.kind === 'bookmark') continue;
        if (event.kind === 'deleted') seen.delete(event.object.metadata.name);
        else seen.set(event.object.metadata.name, event.object);
        if (isEnd(seen)) return;
      }
      page = await cluster.admin.listPage(PODS, query);
    }
  };
  try {
    await Promise.all([follow(), started]);
  } catch (error) {
    const events = await cluster.kubectl('get', 'events', '--sort-by=.lastTimestamp').catch(String);
    throw new Error(`${app}: the round did not end: ${String(error)}\n${events.slice(-3_000)}`, { cause: error });
  } finally {
    stop.abort();
  }
}

function byName(pods: readonly KubeObject[]): Map<string, KubeObject> {
  return new Map(pods.map((pod) => [pod.metadata.name, pod]));
}

function isReady(pod: KubeObject): boolean {
  const status = isObject(pod['status']) ? pod['status'] : {};
  const conditions = Array.isArray(status['conditions']) ? status['conditions'].filter(isObject) : [];
  return conditions.some((one) => one['type'] === 'Ready' && one['status'] === 'True');
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return (performance.now() - startedMs) / 1000;
}
