import test from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing, tellOurPods } from './deploy.ts';
import { awaitPods, deploymentManifest, pingFrom, podManifest, podsOf, type SeenPod } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';

const running = clusterOfFile(
  () =>
    startRealCluster({
      nodes: [{ name: 'node1' }, { name: 'node2' }, { name: 'node3', joins: 'later' }],
    }),
  async (cluster) => {
    await cluster.deploy();
  },
);

test.serial('a node that reboots: gives Pods addresses again that reach the others', async (t) => {
  const cluster = running();
  await cluster.apply(podManifest('still', { spec: { nodeName: 'node1' } }));
  // Bound by a selector: the kubelet refuses Pods that it finds after a boot before the device plugin has registered, and
  // a controller makes others.
  const spec = { nodeSelector: { 'kubernetes.io/hostname': 'node2' } };
  await cluster.apply(deploymentManifest('moving', 2, { spec }));
  const [still] = await awaitPods(cluster, 'app=still', 1);
  const before = await awaitPods(cluster, 'app=moving', 2);
  await cluster.node('node2').reboot();
  const isBack = async (): Promise<readonly SeenPod[] | undefined> => {
    const pods = (await podsOf(cluster, 'app=moving')).filter(
      ({ phase, isEnding }) => phase === 'Running' && !isEnding,
    );
    // A status of before the reboot says nothing; a command that runs does.
    const answers = await Promise.all(pods.map(({ name }) => cluster.tryKubectl(['exec', name, '--', 'ls', '/'])));
    return pods.length === before.length && answers.every(({ code }) => code === 0) ? pods : undefined;
  };
  const after = await waitUntil(isBack, { what: 'Pods after the reboot', timeoutMs: 90_000, everyMs: 500 }).catch(
    async (error: Error) => {
      throw new Error(`${error.message}\n${await tellOurPods(cluster)}`);
    },
  );
  await awaitServing(cluster, ['node2']);
  if (still === undefined) return t.fail('no Pod');
  for (const pod of after) {
    t.is(cluster.cloud.vpc.enisOf('node2').includes(cluster.cloud.vpc.eniOf(pod.ip) ?? 'none'), true, pod.ip);
    t.true(await pingFrom(cluster, pod, still.ip));
    t.true(await pingFrom(cluster, still, pod.ip));
  }
});

test.serial('a node that joins later: gives Pods addresses', async (t) => {
  const cluster = running();
  await cluster.join('node3');
  await cluster.deploy({ until: 'applied' });
  await awaitServing(cluster);
  await cluster.apply(podManifest('new', { spec: { nodeName: 'node3' } }));
  const [pod] = await awaitPods(cluster, 'app=new', 1);
  const [still] = await podsOf(cluster, 'app=still');
  if (pod === undefined || still === undefined) return t.fail('no Pods');
  t.true(await pingFrom(cluster, pod, still.ip));
});
