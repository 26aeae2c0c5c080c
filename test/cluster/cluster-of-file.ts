import test from 'ava';
import type { RealCluster } from './real-cluster.ts';

/**
 * Starts a cluster before the tests of a file and closes it after them, also when `prepare` failed. Called once in a
 * file; returns how its tests get the cluster, which throws when there is none.
 */
export function clusterOfFile(
  start: () => Promise<RealCluster>,
  prepare: (cluster: RealCluster) => Promise<unknown>,
): () => RealCluster {
  let started: RealCluster | undefined;
  test.before(async () => {
    started = await start();
    await prepare(started);
  });
  test.after.always(() => started?.close());
  return () => {
    if (started === undefined) throw new Error('the cluster did not start');
    return started;
  };
}
