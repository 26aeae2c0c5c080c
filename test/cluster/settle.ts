import { setTimeout as sleep } from 'node:timers/promises';
import { EXTENDED_RESOURCES } from '../../crd/names.ts';
import { PODS } from '../../kube/resource-types.ts';
import { isObject } from '../../sim/support/netns.ts';
import { keyOf, listAll } from './audit.ts';
import { awaitPods, type SeenPod } from './pods.ts';
import type { RealCluster } from './real-cluster.ts';

/**
 * Waits, under disturbances, until a workload's Pods are ready as many as wanted. A kubelet that has just started rejects
 * for good the Pods that were bound to it before the agent has registered; nobody but people takes those away, so this does.
 * @throws Error with the Pods and events; at once when a Pod has failed for another reason
 * @see https://github.com/kubernetes/kubernetes/issues/125579
 */
export async function awaitSettled(
  cluster: RealCluster,
  app: string,
  count: number,
  timeoutMs = 180_000,
): Promise<readonly SeenPod[]> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    await removeRejected(cluster, app);
    const left = deadline - performance.now();
    try {
      return await awaitPods(cluster, `app=${app}`, count, { timeoutMs: Math.min(left, 5_000) });
    } catch (error) {
      if (left < 0) throw error;
      await sleep(100);
    }
  }
}

/** Reasons for which a kubelet rejects a Pod that somebody bound to it. */
const REJECTIONS = ['UnexpectedAdmissionError', ...EXTENDED_RESOURCES.map((resource) => `OutOf${resource}`)];

async function removeRejected(cluster: RealCluster, app: string): Promise<void> {
  const pods = (await listAll(cluster, PODS)).filter(({ metadata }) => metadata.labels?.['app'] === app);
  for (const pod of pods) {
    const status = isObject(pod['status']) ? pod['status'] : {};
    if (status['phase'] !== 'Failed') continue;
    if (!REJECTIONS.includes(String(status['reason'])))
      throw new Error(`${keyOf(pod)} failed: ${String(status['reason'])}: ${String(status['message'])}`);
    await cluster.kubectl('delete', 'pod', pod.metadata.name, '--ignore-not-found', '--wait=false');
  }
}
