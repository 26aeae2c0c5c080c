import test, { type ExecutionContext } from 'ava';
import { ENI_IP_TAINT, STARTUP_TAINT_KEY } from '../../crd/names.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { CCM_COMPONENT, CLUSTER_ID, loadImages } from './deploy.ts';
import { awaitPods, deploymentManifest, pingFrom, podsOf, spreadOverNodes } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { CCM, holderOf, readNode, restartControllerManager } from './workloads/cloud-nodes.ts';
import { ECHO_SERVER } from './workloads/echo.ts';
import {
  blocksOf,
  CLUSTER_CIDR,
  GR_DEPLOYMENT,
  GR_KUBE_PROXY,
  GR_SERVICE_CIDR,
  isOfBlockOf,
  routesOf,
  whyNotOpen,
} from './workloads/gr-cluster.ts';

// A GlobalRoute cluster whose kubelets wait for a cloud controller manager, and whose node pool has a startup taint: ipamd
// gives the blocks and takes the taint off, the cloud controller manager makes the routes.

/** Lock of who keeps routes, in `kube-system`. */
const ROUTES_LOCK = 'tke-eni-pod-routes';
const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized';
const IPAMD_USER = 'system:serviceaccount:kube-system:tke-eni-ipamd';
const FIRST = ['node1', 'node2'] as const;
const GR = { selector: 'app=gr', options: { ...ECHO_SERVER, network: '' } } as const;

const running = clusterOfFile(
  () =>
    startRealCluster({
      nodes: [...FIRST, 'node3'].map((name) => ({
        name,
        external: 'provider-id' as const,
        ...(name === 'node3' ? { joins: 'later' as const } : {}),
        kubelet: { registerWithTaints: [ENI_IP_TAINT, { key: STARTUP_TAINT_KEY, effect: 'NoSchedule' }] },
      })),
      serviceCidr: GR_SERVICE_CIDR,
      kubeProxyFlags: GR_KUBE_PROXY,
    }),
  async () => {},
);

/** Every node that is up has its block and the route to it, takes Pods, and there is no other route. */
async function assertRouted(t: ExecutionContext, names: readonly string[]): Promise<void> {
  const cluster = running();
  for (const name of names) t.deepEqual(await whyNotOpen(cluster, name), []);
  const blocks = await blocksOf(cluster);
  t.deepEqual(routesOf(cluster.cloud), names.map((name) => `${blocks.get(name)} ${cluster.node(name).ip}`).toSorted());
}

test.serial(
  '--routes=global: the first nodes of a cluster get their routes, and lose the taints of new nodes',
  async (t) => {
    const cluster = running();
    for (const name of FIRST) {
      const { taints } = await readNode(cluster, name);
      for (const key of [UNINITIALIZED, STARTUP_TAINT_KEY])
        t.true(taints.includes(key), `${name}: ${taints.join(' ')}`);
    }
    await cluster.deploy({
      ...GR_DEPLOYMENT,
      components: [CCM_COMPONENT],
      ipamdSettings: { ...GR_DEPLOYMENT.ipamdSettings, 'gr-routes': 'ccm' },
      ccmSettings: { routes: 'global', 'cluster-cidr': CLUSTER_CIDR, clusterid: CLUSTER_ID },
    });
    await assertRouted(t, FIRST);
    t.deepEqual([...(await blocksOf(cluster)).values()].toSorted(), ['192.168.0.0/26', '192.168.0.64/26']);
  },
);

test.serial('--routes=global: Pods of two nodes have addresses of their blocks, and reach each other', async (t) => {
  const cluster = running();
  const spec = { ...ECHO_SERVER.spec, ...spreadOverNodes('gr') };
  await cluster.apply(deploymentManifest('gr', 4, { ...GR.options, spec }));
  const pods = await awaitPods(cluster, GR.selector, 4, { timeoutMs: 120_000 });
  t.deepEqual([...new Set(pods.map(({ node }) => node))].toSorted(), [...FIRST]);
  for (const { name, node, ip } of pods) t.true(await isOfBlockOf(cluster, node, ip), `${name} ${ip} on ${node}`);
  for (const from of pods)
    for (const to of pods) t.true(await pingFrom(cluster, from, to.ip), `${from.name} to ${to.name}`);
});

test.serial(
  '--routes=global: the lock of who keeps routes outlives a kube-controller-manager that starts again',
  async (t) => {
    const cluster = running();
    const lock = () => cluster.kubectlJson('-n', 'kube-system', 'get', 'endpoints', ROUTES_LOCK);
    const [before, holder] = [await lock(), await holderOf(cluster, ROUTES_LOCK)];
    await restartControllerManager(cluster);
    t.is(at(await lock(), 'metadata', 'uid'), at(before, 'metadata', 'uid'));
    t.is(await holderOf(cluster, ROUTES_LOCK), holder);
    t.is(holder, CCM.name);
    await assertRouted(t, FIRST);
  },
);

test.serial('--routes=global: a node that joins gets its route, and its Pods reach those of others', async (t) => {
  const cluster = running();
  const node = await cluster.join('node3');
  await loadImages([node], [CCM_COMPONENT]);
  await assertRouted(t, [...FIRST, 'node3']);
  await cluster.apply(deploymentManifest('late', 1, { ...GR.options, spec: { nodeName: 'node3' } }));
  const [late] = await awaitPods(cluster, 'app=late', 1, { timeoutMs: 120_000 });
  if (late === undefined) return t.fail();
  for (const { name, ip } of await podsOf(cluster, GR.selector)) t.true(await pingFrom(cluster, late, ip), name);
});

test.serial('--routes=global: the route of a Node that is deleted goes, and no other', async (t) => {
  const cluster = running();
  // Pods of a Node that is gone would stay for 40 s.
  await cluster.kubectl('delete', 'deployment', 'late', '--cascade=foreground', '--timeout=50s');
  const sinceMs = performance.now();
  await cluster.terminate('node3');
  await waitUntil(() => routesOf(cluster.cloud).length === 2, {
    what: 'two routes',
    timeoutMs: 90_000,
    everyMs: 500,
    explain: () => routesOf(cluster.cloud).join('; '),
  });
  t.log(`figure: ${Math.round(performance.now() - sinceMs)} ms until the route is gone`);
  await assertRouted(t, FIRST);
});

test.serial('--routes=global: cloud, objects and kernels agree', async (t) => {
  t.deepEqual(await auditCluster(running()), []);
});

test.serial(
  '--routes=global: the published role is enough, and only the cloud controller manager writes conditions of routes',
  (t) => {
    const cluster = running();
    t.deepEqual(refusedRequests(cluster), []);
    const writers = cluster
      .auditLog()
      .filter((one) => at(one, 'verb') === 'patch' && at(one, 'objectRef', 'subresource') === 'status')
      .filter((one) => at(one, 'objectRef', 'resource') === 'nodes')
      .map((one) => String(at(one, 'user', 'username')));
    t.true(writers.includes(CCM.user), [...new Set(writers)].join(' '));
    t.false(writers.includes(IPAMD_USER));
  },
);
