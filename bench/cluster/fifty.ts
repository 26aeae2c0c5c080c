import type { KubeObject } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import { podManifest } from '../../test/cluster/pods.ts';
import type { RealCluster } from '../../test/cluster/real-cluster.ts';
import { isObject } from '../../test/support/netns.ts';
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
  const ready = new Set<string>();
  await followPods(
    cluster,
    app,
    async () => {
      await Promise.all(
        pods.map((pod) => cluster.admin.create(PODS, { ...pod, metadata: { ...pod.metadata, namespace: NAMESPACE } })),
      );
    },
    (kind, pod) => {
      if (kind !== 'deleted' && isReady(pod)) ready.add(pod.metadata.name);
      return ready.size === pods.length;
    },
  );
}

async function takeDown(cluster: RealCluster, app: string, pods: readonly KubeObject[]): Promise<void> {
  const gone = new Set<string>();
  await followPods(
    cluster,
    app,
    async () => {
      await Promise.all(
        pods.map(({ metadata: { name } }) => cluster.admin.delete(PODS, { namespace: NAMESPACE, name })),
      );
    },
    (kind, pod) => {
      if (kind === 'deleted') gone.add(pod.metadata.name);
      return gone.size === pods.length;
    },
  );
}

/** Starts something and follows the Pods of a label until `isEnd` says so. @throws Error when it takes too long */
async function followPods(
  cluster: RealCluster,
  app: string,
  start: () => Promise<void>,
  isEnd: (kind: 'added' | 'modified' | 'deleted', pod: KubeObject) => boolean,
): Promise<void> {
  const query = { namespace: NAMESPACE, labelSelector: `app=${app}` };
  const { resourceVersion } = await cluster.admin.listPage(PODS, query);
  const signal = AbortSignal.timeout(ROUND_TIMEOUT_MS);
  const end = new AbortController();
  const started = start();
  try {
    const events = cluster.admin.watch(PODS, { ...query, resourceVersion }, AbortSignal.any([signal, end.signal]));
    for await (const event of events) if (event.kind !== 'bookmark' && isEnd(event.kind, event.object)) return;
    throw new Error(`the watch of the Pods of ${app} ended`);
  } catch (error) {
    const events = await cluster.kubectl('get', 'events', '--sort-by=.lastTimestamp').catch(String);
    throw new Error(`${app}: the round did not end: ${String(error)}\n${events.slice(-3_000)}`, { cause: error });
  } finally {
    await started;
    end.abort();
  }
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
