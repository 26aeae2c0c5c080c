import { waitUntil } from '../../support/wait-until.ts';
import { awaitPods, podsOf } from '../pods.ts';
import type { RealCluster } from '../real-cluster.ts';

/** How long a Deployment may take to be rolled, milliseconds. */
export const ROLLOUT_MS = 300_000;

/** Rolls a Deployment of so many Pods; resolves when its Pods are others, all of them ready, and the former ones are gone. */
export async function rollDeployment(cluster: RealCluster, name: string, count: number): Promise<void> {
  const before = (await awaitPods(cluster, `app=${name}`, count)).map(({ uid }) => uid);
  await cluster.kubectl('rollout', 'restart', `deployment/${name}`);
  const isRolled = async () => {
    const pods = await podsOf(cluster, `app=${name}`);
    return pods.length === count && pods.every(({ uid, isReady }) => isReady && !before.includes(uid));
  };
  await waitUntil(isRolled, { what: `other Pods of ${name}`, timeoutMs: ROLLOUT_MS, everyMs: 500 });
}
