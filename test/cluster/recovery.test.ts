import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { PODS } from '../../kube/resource-types.ts';
import { isObject } from '../../sim/support/netns.ts';
import { waitUntil } from '../support/wait-until.ts';
import { addressOf, auditCluster, keyOf, listAll } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing } from './deploy.ts';
import {
  CLUSTER_KINDS,
  type Disturbance,
  disturbCluster,
  disturbNode,
  killProcess,
  NODE_KINDS,
  nodeOfIpamdLeader,
} from './disturbances.ts';
import { sandboxesOf, stopSandbox } from './node-facts.ts';
import { awaitPods, deploymentManifest, pingFrom, spreadOverNodes } from './pods.ts';
import { QUICK_RESTARTS } from './quick-restarts.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';
import { awaitSettled } from './settle.ts';

const running = clusterOfFile(
  () =>
    startRealCluster({
      nodes: ['node1', 'node2'].map((name) => ({ name, kubelet: QUICK_RESTARTS })),
    }),
  async (cluster) => {
    // The agent of a Node that was deleted has no identity any more, so it cannot give its ENIs back: ipamd takes them.
    await cluster.deploy({ ipamdSettings: { 'node-release-grace': '20s' } });
    // Pods that stay, and Pods that come and go.
    await cluster.apply(deploymentManifest('stay', 4, { spec: spreadOverNodes('stay') }));
    await cluster.apply(deploymentManifest('come', 2, { spec: spreadOverNodes('come') }));
    await awaitPods(cluster, 'app=stay', 4);
    await awaitPods(cluster, 'app=come', 2);
  },
);

for (const kind of NODE_KINDS.filter((one) => one !== 'reboot'))
  test.serial(`${kind} killed and started again: Pods stay, others come and go`, (t) =>
    survives(t, disturbNode(running(), running().node('node1'), kind)),
  );
for (const kind of CLUSTER_KINDS)
  test.serial(`${kind} killed and started again: Pods stay, others come and go`, (t) =>
    survives(t, disturbCluster(running(), kind)),
  );

test.serial('agent killed while the API server is away: serves a new sandbox from what it remembers', async (t) => {
  const cluster = running();
  const node = cluster.node('node1');
  const before = await identities(cluster, 'stay');
  // Spread evenly: some of four are on this node.
  await cluster.kubectl('scale', 'deployment/come', '--replicas=4');
  await awaitSettled(cluster, 'come', 4);
  const [stopped] = (await sandboxesOf(node)).filter(({ isReady, pod }) => isReady && pod.includes('/come-'));
  if (stopped === undefined) return t.fail('no Pod that may go');
  await cluster.apiServer.kill();
  await killProcess(node, 'tke-eni-agent');
  await stopSandbox(node, stopped.id);
  // Kubelet has the Pod in memory, and makes it again.
  await waitUntil(
    async () =>
      (await sandboxesOf(node)).some((one) => one.isReady && one.podUid === stopped.podUid && one.ips.length > 0),
    {
      what: `a new sandbox of ${stopped.pod} without API server`,
      timeoutMs: 90_000,
      everyMs: 500,
      explain: () => node.logs(),
    },
  );
  cluster.apiServer.start();
  await cluster.awaitApiServer();
  await awaitSettled(cluster, 'come', 4);
  t.deepEqual(await identities(cluster, 'stay'), before);
  t.deepEqual(await auditCluster(cluster), []);
});

test.serial("the node of ipamd's leader reboots: its Pods run again with addresses, the others stay", async (t) => {
  const cluster = running();
  const node = await nodeOfIpamdLeader(cluster);
  const before = await identities(cluster, 'stay');
  await disturbNode(cluster, node, 'reboot').run(1_000);
  await awaitServing(cluster);
  // Its status is of before the reboot until the kubelet has looked.
  const others = before.filter((one) => one.node !== node.name);
  await waitUntil(
    async () => {
      const now = (await identities(cluster, 'stay')).filter((one) => one.node === node.name && one.isReady);
      return now.length === 2 && now.every((one) => !before.some((old) => old.containers === one.containers));
    },
    { what: 'Pods in new containers', timeoutMs: 120_000, everyMs: 500, explain: () => node.logs() },
  );
  const pods = await awaitSettled(cluster, 'stay', 4);
  t.deepEqual(
    (await identities(cluster, 'stay')).filter((one) => one.node !== node.name),
    others,
  );
  for (const from of pods)
    for (const to of pods) t.true(await pingFrom(cluster, from, to.ip), `${from.name} ${to.name}`);
  // The kubelet may have rejected a Pod before the node had its resources again. Such a Pod keeps its record for a minute.
  await awaitSettled(cluster, 'come', 4);
  t.deepEqual(await auditCluster(cluster), []);
});

test.serial('a node that is drained, stopped and deleted: its ENIs go back, and it may come again', async (t) => {
  const cluster = running();
  const { vpc } = cluster.cloud;
  const node = cluster.node('node2');
  t.true(vpc.enisOf('node2').length > 0);
  await cluster.kubectl('drain', 'node2', '--ignore-daemonsets', '--delete-emptydir-data', '--force', '--timeout=60s');
  await Promise.all([node.kubelet.kill('SIGTERM'), node.kubeProxy.kill('SIGTERM')]);
  await cluster.kubectl('delete', 'node', 'node2');
  await waitUntil(async () => (await cluster.tryKubectl(['get', 'nec', 'node2'])).stderr.includes('NotFound'), {
    what: 'the end of the NodeENIConfig',
    timeoutMs: 120_000,
    everyMs: 500,
    explain: () => cluster.logs(),
  });
  t.deepEqual(vpc.enisOf('node2'), []);
  t.deepEqual(await auditCluster(cluster, { without: ['node2'] }), []);
  node.startKubelet();
  await cluster.awaitKubectl(['get', 'node/node2'], 'registration of node2');
  await awaitServing(cluster);
  await cluster.kubectl('scale', 'deployment/come', '--replicas=6');
  // All others are on the other node: spread evenly, these have to go to this one.
  const pods = [...(await awaitSettled(cluster, 'stay', 4)), ...(await awaitSettled(cluster, 'come', 6))];
  t.true(pods.some((pod) => pod.node === 'node2'));
  t.deepEqual(await auditCluster(cluster), []);
});

test.serial('after everything: no Pod, and nothing of one is left', async (t) => {
  const cluster = running();
  await cluster.kubectl('delete', 'deployment', '--all', '--cascade=foreground', '--timeout=60s');
  t.deepEqual((await listAll(cluster, PODS)).filter(({ metadata }) => metadata.namespace === 'default').map(keyOf), []);
  t.deepEqual(await auditCluster(cluster), []);
});

/** Disturbs while Pods come and go, and looks at all of them when the dust has settled. */
async function survives(t: ExecutionContext, disturbance: Disturbance): Promise<void> {
  const cluster = running();
  const before = await identities(cluster, 'stay');
  await Promise.all([disturbance.run(4_000), sleep(500).then(() => comeAndGo(cluster))]);
  await cluster.awaitApiServer();
  await awaitServing(cluster);
  await awaitSettled(cluster, 'come', 4);
  await cluster.kubectl('scale', 'deployment/come', '--replicas=2');
  await awaitSettled(cluster, 'come', 2);
  t.deepEqual(await identities(cluster, 'stay'), before);
  t.deepEqual(await auditCluster(cluster), []);
}

/** One Pod is deleted at once, another one politely, and more are asked for; as soon as the API server lets it. */
async function comeAndGo(cluster: RealCluster): Promise<void> {
  const [one = '', other = ''] = await names(cluster);
  await cluster.awaitKubectl(
    ['delete', 'pod', one, '--grace-period=0', '--force', '--ignore-not-found', '--wait=false'],
    `deletion of ${one}`,
  );
  await cluster.awaitKubectl(['delete', 'pod', other, '--ignore-not-found', '--wait=false'], `deletion of ${other}`);
  await cluster.awaitKubectl(['scale', 'deployment/come', '--replicas=4'], 'more Pods');
}

async function names(cluster: RealCluster): Promise<readonly string[]> {
  const list = await cluster.awaitKubectl(['get', 'pods', '-l', 'app=come', '-o', 'name'], 'list of Pods');
  return list.split('\n').map((line) => line.replace('pod/', ''));
}

/** What a Pod keeps while nobody restarts it. */
type Identity = {
  readonly name: string;
  readonly node: string;
  readonly uid: string;
  readonly ip: string;
  readonly isReady: boolean;
  /** Ids and numbers of restarts of its containers. */
  readonly containers: string;
};

async function identities(cluster: RealCluster, app: string): Promise<readonly Identity[]> {
  const pods = (await listAll(cluster, PODS)).filter(({ metadata }) => metadata.labels?.['app'] === app);
  return pods
    .map((pod) => {
      const { spec, status } = pod;
      const statuses =
        isObject(status) && Array.isArray(status['containerStatuses']) ? status['containerStatuses'] : [];
      return {
        name: pod.metadata.name,
        node: isObject(spec) ? String(spec['nodeName']) : '',
        uid: String(pod.metadata.uid),
        ip: addressOf(pod),
        isReady: statuses.every((one: unknown) => isObject(one) && one['ready'] === true),
        containers: statuses
          .filter(isObject)
          .map((one) => `${String(one['containerID'])} ${String(one['restartCount'])}`)
          .join(),
      };
    })
    .sort((a, b) => a.name.localeCompare(b.name));
}
