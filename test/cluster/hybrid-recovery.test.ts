import test from 'ava';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing } from './deploy.ts';
import { disturbNode, killProcess, NODE_KINDS, nodeOfIpamdLeader } from './disturbances.ts';
import { awaitPods, deploymentManifest, podsOf, restartsOf, type SeenPod, spreadOverNodes } from './pods.ts';
import { QUICK_RESTARTS } from './quick-restarts.ts';
import { CONTROL_PLANE, startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { awaitSettled } from './settle.ts';
import { ECHO_SERVER } from './workloads/echo.ts';
import { blocksOf, GR_DEPLOYMENT, GR_KUBE_PROXY, GR_SERVICE_CIDR, routesOf } from './workloads/gr-cluster.ts';
import { startPings } from './workloads/steady-pings.ts';
import { wrongSources } from './workloads/wrong-sources.ts';

// GlobalRoute Pods beside Pods of ENIs, while what runs them dies and comes back.

const NETWORKS = { gr: '', eni: 'tke-route-eni' } as const;
const COUNT = 4;

const running = clusterOfFile(
  () =>
    startRealCluster({
      nodes: ['node1', 'node2'].map((name) => ({ name, kubelet: QUICK_RESTARTS })),
      serviceCidr: GR_SERVICE_CIDR,
      kubeProxyFlags: GR_KUBE_PROXY,
    }),
  async (cluster) => {
    await cluster.deploy({ ...GR_DEPLOYMENT, until: 'nodes', subnetIds: cluster.cloud.podSubnetIds });
    for (const [name, network] of Object.entries(NETWORKS)) {
      const spec = { ...ECHO_SERVER.spec, ...spreadOverNodes(name) };
      await cluster.apply(deploymentManifest(name, COUNT, { ...ECHO_SERVER, network, spec }));
    }
    for (const name of Object.keys(NETWORKS)) await awaitPods(cluster, `app=${name}`, COUNT);
  },
);

for (const kind of NODE_KINDS.filter((one) => one !== 'reboot'))
  test.serial(`${kind} killed and started again: Pods stay and lose no packet, a new one comes`, async (t) => {
    const cluster = running();
    const before = await allPods();
    const stop = startPings(cluster.cloud.vpc.node(CONTROL_PLANE).netns, before);
    await disturbNode(cluster, cluster.node('node1'), kind).run(2_000);
    for (const name of Object.keys(NETWORKS)) {
      await cluster.kubectl('scale', `deployment/${name}`, `--replicas=${COUNT + 2}`);
      await awaitSettled(cluster, name, COUNT + 2);
    }
    const pods = await allPods();
    t.deepEqual(
      before.filter(({ uid, ip }) => !pods.some((pod) => pod.uid === uid && pod.ip === ip)),
      [],
    );
    for (const { pod, sent, answered } of await stop()) {
      t.true(sent > 20, `${pod}: ${sent}`);
      t.is(answered, sent, pod);
    }
    t.deepEqual(await wrongSources(cluster, pods), []);
    for (const name of Object.keys(NETWORKS)) {
      // Those that were there stay: a ReplicaSet ends the youngest.
      await cluster.kubectl('scale', `deployment/${name}`, `--replicas=${COUNT}`);
      t.deepEqual(new Set(await restartsOf(cluster, `app=${name}`)), new Set([0]));
      await awaitSettled(cluster, name, COUNT);
    }
  });

test.serial('reboot: Pods of both networks come back', async (t) => {
  const cluster = running();
  const blocks = await blocksOf(cluster);
  await cluster.node('node1').reboot();
  await awaitServing(cluster);
  for (const name of Object.keys(NETWORKS)) await awaitSettled(cluster, name, COUNT);
  const restarted = async (): Promise<boolean> =>
    (await Promise.all(Object.keys(NETWORKS).map((name) => restartsOf(cluster, `app=${name}`))))
      .flat()
      .some((n) => n > 0);
  await waitUntil(restarted, { what: 'containers that were started again', timeoutMs: 120_000, everyMs: 500 });
  for (const name of Object.keys(NETWORKS)) await awaitSettled(cluster, name, COUNT);
  t.deepEqual(await blocksOf(cluster), blocks);
  t.deepEqual(await wrongSources(cluster, await allPods()), []);
});

test.serial('a Node that goes and registers again as ipamd dies: has its block and route, and new Pods', async (t) => {
  const cluster = running();
  const node = await nodeOfIpamdLeader(cluster);
  const { name } = node;
  const blocks = await blocksOf(cluster);
  const routes = routesOf(cluster.cloud);
  // The next leader has the record alone.
  await killProcess(node, 'tke-eni-ipamd');
  await cluster.kubectl('delete', 'node', name);
  await node.kubelet.restart();
  await cluster.awaitKubectl(['get', `node/${name}`], `registration of ${name}`);
  await waitUntil(async () => (await blocksOf(cluster)).get(name) === blocks.get(name), {
    what: `the block ${blocks.get(name)} of ${name}`,
    timeoutMs: 60_000,
    everyMs: 500,
  });
  await awaitServing(cluster);
  for (const network of Object.keys(NETWORKS)) await awaitSettled(cluster, network, COUNT);
  t.deepEqual(await blocksOf(cluster), blocks);
  t.deepEqual(routesOf(cluster.cloud), routes);
  t.deepEqual(await wrongSources(cluster, await allPods()), []);
});

test.serial('hybrid: after all that cloud, objects and kernels agree, and nothing was refused', async (t) => {
  t.deepEqual(await auditCluster(running()), []);
  t.deepEqual(refusedRequests(running()), []);
});

async function allPods(): Promise<readonly SeenPod[]> {
  return (await Promise.all(Object.keys(NETWORKS).map((name) => podsOf(running(), `app=${name}`)))).flat();
}
