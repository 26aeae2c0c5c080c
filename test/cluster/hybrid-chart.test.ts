import { spawnSync } from 'node:child_process';
import test from 'ava';
import { isInCidr } from '../../crd/ip-text.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing, CCM_COMPONENT, CLUSTER_ID, loadImages } from './deploy.ts';
import { blockOf } from './doc-commands.ts';
import { HELM, PageUser, readPage } from './page-user.ts';
import { awaitPods, deploymentManifest, pingFrom, podsOf, spreadOverNodes } from './pods.ts';
import { CONTROL_PLANE, startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { awaitNode, CCM, holderOf, restartControllerManager } from './workloads/cloud-nodes.ts';
import { ECHO_SERVER } from './workloads/echo.ts';
import { blocksOf, GR_KUBE_PROXY, GR_SERVICE_CIDR, routesOf, whyNotOpen } from './workloads/gr-cluster.ts';
import { startPings } from './workloads/steady-pings.ts';
import { wrongSources } from './workloads/wrong-sources.ts';

// A hybrid cluster as docs/hybrid.md installs it by the chart, on nodes that wait for a cloud controller manager, with
// Endpoints as every lock.

const VALUES = blockOf(readPage('hybrid.md'), 'yaml', 'Install');
const NETWORKS = { gr: '', eni: 'tke-route-eni' } as const;
const COUNT = 4;
const LOCK = 'tke-eni-ipamd-leader';
/** Lock of who keeps routes. */
const ROUTES_LOCK = 'tke-eni-pod-routes';

/** Gives the routes to the cloud controller manager, by a value of the chart. */
let changeOver = (): Promise<unknown> => Promise.reject(new Error('the chart is not installed'));

if (spawnSync(HELM, ['version', '--short']).status !== 0) {
  test.skip('docs/hybrid.md: the values of its page make a hybrid cluster (HELM names no helm executable)', () => {});
} else {
  const running = clusterOfFile(
    () =>
      startRealCluster({
        nodes: [
          { name: 'node1', external: 'address' },
          { name: 'node2', external: 'address' },
        ],
        serviceCidr: GR_SERVICE_CIDR,
        kubeProxyFlags: GR_KUBE_PROXY,
      }),
    async (cluster) => {
      await loadImages(cluster.nodes, [CCM_COMPONENT, 'webhook']);
      const user = new PageUser(cluster);
      const values = VALUES.replace('cls-a1b2c3d4', CLUSTER_ID).replace(
        /^subnets: .*$/m,
        `subnets: [${cluster.cloud.podSubnetIds.join(', ')}]`,
      );
      user.write('values.yaml', values);
      const secret = 'kubectl -n kube-system create secret generic tke-eni-ipamd-credentials';
      await user.sh(`${secret} --from-literal=secretId=ID --from-literal=secretKey=KEY`);
      const more = ' --set cloudControllerManager.enabled=true --set cloudControllerManager.settings.protocol=http';
      const lock = ' --set ipamd.settings.leader-elect-lock=endpoints';
      const release = 'tke-eni dist/helm/tke-eni --namespace kube-system -f values.yaml';
      const settings = user.helmSettings() + more + lock;
      await user.sh(`helm install ${release}${settings}`);
      changeOver = () => user.sh(`helm upgrade ${release}${settings} --set network.routes=ccm`);
      await awaitServing(cluster);
    },
  );

  test.serial(
    'docs/hybrid.md: with the values of its page each Node has a block, its route, and addresses of ENIs',
    async (t) => {
      const cluster = running();
      for (const { name } of cluster.nodes) {
        const { taints } = await awaitNode(cluster, name, 'without taints', (node) => node.taints.length === 0);
        t.deepEqual(taints, []);
        t.deepEqual(await whyNotOpen(cluster, name), []);
      }
      const blocks = await blocksOf(cluster);
      t.deepEqual([...blocks.values()].toSorted(), ['192.168.0.0/26', '192.168.0.64/26']);
      t.deepEqual(routesOf(cluster.cloud), cluster.nodes.map(({ name, ip }) => `${blocks.get(name)} ${ip}`).toSorted());
    },
  );

  test.serial('docs/hybrid.md: Pods of both networks have their addresses, and reach each other', async (t) => {
    const cluster = running();
    for (const [name, network] of Object.entries(NETWORKS)) {
      const spec = { ...ECHO_SERVER.spec, ...spreadOverNodes(name) };
      await cluster.apply(deploymentManifest(name, COUNT, { ...ECHO_SERVER, network, spec }));
    }
    const [gr, eni] = [
      await awaitPods(cluster, 'app=gr', COUNT, { timeoutMs: 120_000 }),
      await awaitPods(cluster, 'app=eni', COUNT, { timeoutMs: 120_000 }),
    ];
    const blocks = await blocksOf(cluster);
    for (const { name, ip, node } of gr) t.true(isInCidr(ip, blocks.get(node) ?? ''), `${name} ${ip}`);
    for (const { name, ip, node } of eni)
      t.true(cluster.cloud.vpc.enisOf(node).includes(cluster.cloud.vpc.eniOf(ip) ?? 'none'), `${name} ${ip}`);
    for (const from of [gr[0], eni[0]])
      for (const to of [...gr, ...eni])
        if (from !== undefined) t.true(await pingFrom(cluster, from, to.ip), `${from.name} to ${to.name}`);
    t.deepEqual(await wrongSources(cluster, [...gr, ...eni]), []);
  });

  test.serial('ipamd: its Endpoints lock outlives a kube-controller-manager that starts again', async (t) => {
    const cluster = running();
    const lock = () => cluster.kubectlJson('-n', 'kube-system', 'get', 'endpoints', LOCK);
    const [before, holder] = [await lock(), await holderOf(cluster, LOCK)];
    t.regex(holder, /^tke-eni-ipamd-/);
    await restartControllerManager(cluster);
    t.is(at(await lock(), 'metadata', 'uid'), at(before, 'metadata', 'uid'));
    t.is(await holderOf(cluster, LOCK), holder);
    const { stdout } = await cluster.tryKubectl(['-n', 'kube-system', 'get', 'configmap', LOCK, '-o', 'name']);
    t.is(stdout, '', 'there is no other lock');
  });

  test.serial(
    'network.routes: from ipamd to the cloud controller manager, no route is touched and no packet is lost',
    async (t) => {
      const cluster = running();
      t.is(await holderOf(cluster, ROUTES_LOCK), 'tke-eni-ipamd');
      const changesOfRoutes = () => {
        const { CreateGlobalRoutes, DeleteGlobalRoutes } = cluster.cloud.host.counts();
        return { CreateGlobalRoutes, DeleteGlobalRoutes };
      };
      const [routes, changes, pods] = [routesOf(cluster.cloud), changesOfRoutes(), await podsOf(cluster, 'app=gr')];
      const stop = startPings(cluster.cloud.vpc.node(CONTROL_PLANE).netns, pods);
      try {
        await changeOver();
        await waitUntil(async () => (await holderOf(cluster, ROUTES_LOCK)) === CCM.name, {
          what: `${CCM.name} keeps the routes`,
          timeoutMs: 180_000,
          everyMs: 1_000,
        });
        for (const name of [CCM.name, 'tke-eni-ipamd'])
          await cluster.kubectl('-n', 'kube-system', 'rollout', 'status', `deployment/${name}`, '--timeout=180s');
      } finally {
        for (const { pod, sent, answered } of await stop()) {
          t.true(sent > 30, `${pod}: ${sent}`);
          t.is(answered, sent, pod);
        }
      }
      t.deepEqual(routesOf(cluster.cloud), routes);
      t.deepEqual(changesOfRoutes(), changes);
      for (const { name } of cluster.nodes) t.deepEqual(await whyNotOpen(cluster, name), []);
    },
  );

  test.serial('docs/hybrid.md: cloud, objects and kernels agree, and nothing was refused', async (t) => {
    t.deepEqual(await auditCluster(running()), []);
    t.deepEqual(refusedRequests(running()), []);
  });
}
