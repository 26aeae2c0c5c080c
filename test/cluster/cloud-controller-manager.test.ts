import test, { type ExecutionContext } from 'ava';
import { ENI_IP_TAINT, STARTUP_TAINT_KEY } from '../../crd/names.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing, CCM_COMPONENT, loadImages, tellOurPods } from './deploy.ts';
import { awaitPods, deploymentManifest, podManifest, podsOf, spreadOverNodes } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { awaitSettled } from './settle.ts';
import {
  awaitNode,
  CCM,
  CCM_LOCK,
  ccmPods,
  holderOf,
  nodeNames,
  readNode,
  restartControllerManager,
} from './workloads/cloud-nodes.ts';

// A cluster whose kubelets wait for a cloud controller manager: they know no zone and no type, and either their address or
// their instance. Ours runs in it under the published role, with the Endpoints lock.

const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized';
const SHUTDOWN = 'node.cloudprovider.kubernetes.io/shutdown';
const SYSTEM = ['-n', 'kube-system'] as const;
/** Addresses of instances in the internet. */
const PUBLIC_IPS: Readonly<Record<string, string>> = { node2: '203.0.113.12' };
/** Every right that the process uses. @see docs/cloud-controller-manager.md */
const USED_RIGHTS = [
  'create endpoints',
  'create events',
  'create selfsubjectaccessreviews',
  'delete nodes',
  'get endpoints',
  'get nodes',
  'list nodes',
  'patch events',
  'patch nodes',
  'patch nodes/status',
  'update endpoints',
  'watch nodes',
];

const running = clusterOfFile(
  () =>
    startRealCluster({
      nodes: [
        { name: 'node1', external: 'provider-id' },
        { name: 'node2', external: 'address', joins: 'later' },
        { name: 'node3', external: 'provider-id', joins: 'later' },
        {
          name: 'node4',
          external: 'address',
          joins: 'later',
          kubelet: { registerWithTaints: [ENI_IP_TAINT, { key: STARTUP_TAINT_KEY, effect: 'NoSchedule' }] },
        },
      ],
      // Default: 50 s until a node that does not answer is not ready.
      controllerManagerFlags: { 'node-monitor-grace-period': '20s' },
    }),
  async (cluster) => {
    const { host, instanceOf } = cluster.cloud;
    for (const [name, ip] of Object.entries(PUBLIC_IPS)) {
      const instance = host.model.state.instances.get(instanceOf(name));
      if (instance !== undefined) instance.publicIps = [ip];
    }
  },
);

/** A Node that is initialised has all of its instance. */
async function assertInitialised(t: ExecutionContext, name: string): Promise<void> {
  const cluster = running();
  const { instanceId, ip } = cluster.node(name);
  const node = await awaitNode(cluster, name, 'initialised', ({ taints }) => !taints.includes(UNINITIALIZED));
  t.is(node.providerId, `tencentcloud:///ap-guangzhou-3/${instanceId}`);
  const external = PUBLIC_IPS[name] === undefined ? [] : [`ExternalIP ${PUBLIC_IPS[name]}`];
  t.deepEqual(node.addresses, [`InternalIP ${ip}`, ...external, `Hostname ${name}`]);
  t.like(node.labels, {
    'node.kubernetes.io/instance-type': 'S5.4CORE',
    'topology.kubernetes.io/zone': 'ap-guangzhou-3',
    'topology.kubernetes.io/region': 'ap-guangzhou',
    'topology.com.tencent.cloud.csi.cbs/zone': 'ap-guangzhou-3',
    'node.tke.cloud.tencent.com/cpu': '4',
    'node.tke.cloud.tencent.com/memory': '8',
    'kubernetes.io/hostname': name,
  });
}

test.serial(
  'external: before there is a cloud controller manager, the first node has no address and takes no Pod',
  async (t) => {
    const node = await readNode(running(), 'node1');
    t.true(node.taints.includes(UNINITIALIZED), node.taints.join(' '));
    t.deepEqual(
      node.addresses.filter((one) => one.startsWith('InternalIP')),
      [],
    );
    t.is(at(node.labels, 'topology.kubernetes.io/zone'), undefined);
  },
);

test.serial('external: the first node of a cluster comes up, and gives Pods addresses', async (t) => {
  const cluster = running();
  await cluster.deploy({ components: [CCM_COMPONENT] });
  await assertInitialised(t, 'node1');
  // It has done its work before its readiness is looked at.
  const isReady = async () => (await ccmPods(cluster)).some((pod) => pod.isReady);
  await waitUntil(isReady, { what: 'a cloud controller manager that is ready', timeoutMs: 60_000, everyMs: 500 });
  t.deepEqual(
    (await ccmPods(cluster))
      .map(({ node, isReady }) => ({ node, isReady }))
      .toSorted((a, b) => (a.node < b.node ? 1 : -1)),
    [
      { node: 'node1', isReady: true },
      { node: '', isReady: false },
    ],
    'the other replica waits for another node',
  );
});

test.serial('external: nodes that join are initialised, whether they tell an address or an instance', async (t) => {
  const cluster = running();
  const names = ['node2', 'node3', 'node4'];
  const nodes = await Promise.all(names.map((name) => cluster.join(name)));
  for (const name of names) await assertInitialised(t, name);
  // Its agent has no image yet.
  t.true((await readNode(cluster, 'node4')).taints.includes(STARTUP_TAINT_KEY));
  await loadImages(nodes, [CCM_COMPONENT]);
  await awaitServing(cluster);
  await awaitNode(cluster, 'node4', 'without its startup taint', ({ taints }) => taints.length === 0);
  const pods = await awaitPods(cluster, CCM.selector, 2, { namespace: 'kube-system', timeoutMs: 120_000 });
  t.is(new Set(pods.map(({ node }) => node)).size, 2);
  const list = await cluster.kubectlJson('get', 'events', '--field-selector', 'reason=Synced');
  const synced = at(list, 'items');
  t.deepEqual(
    (Array.isArray(synced) ? synced : []).map((event) => String(at(event, 'involvedObject', 'name'))).toSorted(),
    ['node1', ...names],
  );
});

test.serial('external: kubectl logs and exec reach Pods of every node', async (t) => {
  const cluster = running();
  const command = ['sh', '-c', 'echo I am $(hostname); exec sleep 3600'];
  await cluster.apply(deploymentManifest('web', 4, { command, spec: spreadOverNodes('web') }));
  const pods = await awaitPods(cluster, 'app=web', 4, { timeoutMs: 120_000 });
  t.is(new Set(pods.map(({ node }) => node)).size, 4);
  for (const { name, node } of pods) {
    t.is((await cluster.kubectl('logs', name)).trim(), `I am ${name}`, node);
    t.is((await cluster.execInPod(name, ['sh', '-c', 'hostname'])).trim(), name, node);
  }
});

test.serial('lock: a kube-controller-manager that starts again leaves it alone', async (t) => {
  const cluster = running();
  const lock = () => cluster.kubectlJson(...SYSTEM, 'get', 'endpoints', CCM_LOCK);
  const [before, leader] = [await lock(), await holderOf(cluster, CCM_LOCK)];
  t.true(
    (await ccmPods(cluster)).some(({ name }) => name === leader),
    leader,
  );
  await restartControllerManager(cluster);
  const after = await lock();
  t.is(at(after, 'metadata', 'uid'), at(before, 'metadata', 'uid'));
  t.is(at(after, 'subsets'), undefined);
  t.is(await holderOf(cluster, CCM_LOCK), leader);
  const slices = await cluster.kubectl(...SYSTEM, 'get', 'endpointslices', '-o', 'name');
  t.notRegex(slices, /cloud-controller-manager/);
});

test.serial('two replicas: the other one takes over when the Pod of the leader is deleted', async (t) => {
  const cluster = running();
  const first = await holderOf(cluster, CCM_LOCK);
  const standby = (await ccmPods(cluster)).find(({ name }) => name !== first)?.name;
  const sinceMs = performance.now();
  await cluster.kubectl(...SYSTEM, 'delete', 'pod', first, '--wait=false');
  await waitUntil(async () => (await holderOf(cluster, CCM_LOCK)) === standby, {
    what: `${standby} leads`,
    timeoutMs: 60_000,
    everyMs: 200,
  });
  t.log(`figure: ${Math.round(performance.now() - sinceMs)} ms until the standby leads`);
  await awaitPods(cluster, CCM.selector, 2, { namespace: 'kube-system', timeoutMs: 120_000 });
  const list = await cluster.kubectlJson(...SYSTEM, 'get', 'events', '--field-selector', 'reason=LeaderElection');
  const told = JSON.stringify(at(list, 'items'));
  t.regex(told, new RegExp(`${standby}_\\S+ became leader`));
  t.regex(told, new RegExp(`${first}_\\S+ stopped leading`));
});

/** A node whose instance stops, and one whose instance is terminated. The cloud controller manager runs on others. */
let fates = { stops: '', ends: '' };

test.serial(
  'lifecycle: the Node of a terminated instance is deleted, that of a stopped one is tainted, and no other is touched',
  async (t) => {
    const cluster = running();
    const { host, instanceOf } = cluster.cloud;
    const names = await nodeNames(cluster);
    const stay = (await ccmPods(cluster)).map(({ node }) => node);
    const [stops = '', ends = ''] = names.filter((name) => !stay.includes(name));
    fates = { stops, ends };
    t.deepEqual([...stay, stops, ends].toSorted(), names);
    const stopped = host.model.state.instances.get(instanceOf(stops));
    if (stopped === undefined) return t.fail('no instance');
    const left = names.filter((name) => name !== ends);
    const before = await Promise.all(left.map((name) => readNode(cluster, name)));
    await cluster.node(stops).powerOff();
    stopped.state = 'STOPPED';
    await cluster.terminateInstance(ends);
    await awaitNode(cluster, stops, 'shutdown taint', ({ taints }) => taints.includes(SHUTDOWN));
    const isGone = async () => !(await nodeNames(cluster)).includes(ends);
    // Two minutes is the least age of a Node that is deleted; two answers follow.
    await waitUntil(isGone, { what: `deletion of ${ends}`, timeoutMs: 240_000, everyMs: 1_000 }).catch(
      async (error: Error) => {
        throw new Error(`${error.message}\n${await tellOurPods(cluster)}`);
      },
    );
    t.deepEqual(await nodeNames(cluster), left);
    const list = await cluster.kubectlJson('get', 'events', '--field-selector', 'reason=DeletingNode');
    t.regex(
      JSON.stringify(at(list, 'items')),
      new RegExp(`Deleting node ${ends} because it does not exist in the cloud provider`),
    );

    stopped.state = 'RUNNING';
    await cluster.node(stops).powerOn();
    await awaitNode(cluster, stops, 'no shutdown taint', ({ taints }) => !taints.includes(SHUTDOWN));
    await awaitServing(cluster, left);
    const after = await Promise.all(left.map((name) => readNode(cluster, name)));
    for (const [index, { uid, providerId, addresses }] of before.entries())
      t.like(after[index], { uid, providerId }, JSON.stringify(addresses));
    const deleted = cluster
      .auditLog()
      .filter((one) => at(one, 'verb') === 'delete' && at(one, 'objectRef', 'resource') === 'nodes');
    t.deepEqual(
      deleted.map((one) => [
        at(one, 'user', 'username'),
        at(one, 'objectRef', 'name'),
        at(one, 'responseStatus', 'code'),
      ]),
      [[CCM.user, ends, 200]],
    );
  },
);

test.serial(
  'lifecycle: the node that was stopped gives Pods addresses again; cloud, objects and kernels agree',
  async (t) => {
    const cluster = running();
    await cluster.apply(podManifest('again', { spec: { nodeName: fates.stops } }));
    await awaitPods(cluster, 'app=again', 1, { timeoutMs: 120_000 });
    // kube-controller-manager deletes Pods of a Node that is gone, after 40 s.
    const isMoved = async () => (await podsOf(cluster, 'app=web')).every(({ node }) => node !== fates.ends);
    await waitUntil(isMoved, { what: `no Pod is on ${fates.ends}`, timeoutMs: 120_000, everyMs: 1_000 });
    await awaitSettled(cluster, 'web', 4);
    t.deepEqual(await auditCluster(cluster), []);
  },
);

test.serial('audit log: the published role is enough, and each right is used that the page says is used', (t) => {
  const cluster = running();
  const asked = cluster.auditLog().filter((one) => at(one, 'user', 'username') === CCM.user);
  const rights = new Map<string, number>();
  for (const one of asked) {
    const subresource = at(one, 'objectRef', 'subresource');
    const resource = `${at(one, 'objectRef', 'resource')}${subresource === undefined ? '' : `/${subresource}`}`;
    const right = `${at(one, 'verb')} ${resource}`;
    rights.set(right, (rights.get(right) ?? 0) + 1);
  }
  t.log([...rights].map(([right, count]) => `${right}: ${count}`).join(', '));
  t.deepEqual(
    [...rights.keys()].filter((right) => !USED_RIGHTS.includes(right)),
    [],
  );
  t.deepEqual(
    // An event is counted up only when it repeats.
    USED_RIGHTS.filter((right) => !rights.has(right) && right !== 'patch events'),
    [],
  );
  t.deepEqual(
    asked.filter((one) => [401, 403].includes(Number(at(one, 'responseStatus', 'code')))),
    [],
  );
  t.deepEqual(refusedRequests(cluster), []);
});
