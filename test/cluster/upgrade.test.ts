import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { isObject, NetnsView } from '../../sim/support/netns.ts';
import { buildImages } from '../../tools/image.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { describeLoss, startTraffic, type Traffic, type TrafficEnd } from '../support/traffic.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { BASE_IMAGES } from './deploy.ts';
import { sandboxesOf } from './node-facts.ts';
import { awaitPods, deploymentManifest, podsOf, type SeenPod, spreadOverNodes } from './pods.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';

// Agents and ipamds are replaced by others, and back, as an upgrade and a rollback do it, while numbered UDP packets flow
// between Pods of one node, of two nodes, and to the outside, and while Pods are asked for. No number may be missing.

/** Packets a second, each way. */
const RATE = 200;
const NODES = ['node1', 'node2'];
const AGENT = 'daemonset/tke-eni-agent';
const IPAMD = 'deployment/tke-eni-ipamd';
/** Stands before the names of the other release's images. */
const OTHER = 'registry.example.com/other/';
const ROLLOUT_MS = 240_000;
/** Pods that come during one rollout: all fit on the nodes. */
const MOST_MORE = 6;

let stay: readonly SeenPod[] = [];
/** Pods of the Deployment that grows. */
let grown = 2;

const running = clusterOfFile(
  () => startRealCluster({ nodes: NODES.map((name) => ({ name })) }),
  async (cluster) => {
    await cluster.deploy();
    // Another time makes all files other ones, as another release's are.
    const others = await buildImages({
      names: BASE_IMAGES,
      prefix: OTHER,
      createdS: 1_000_000_000,
      outDir: join(cluster.dir, 'images'),
    });
    for (const { path } of others) for (const node of cluster.nodes) await node.importImage(path);
    await cluster.apply(deploymentManifest('stay', 4, { spec: spreadOverNodes('stay') }));
    await cluster.apply(deploymentManifest('grow', grown));
    stay = await awaitPods(cluster, 'app=stay', 4);
    await awaitPods(cluster, 'app=grow', grown);
  },
);

test.serial('agents: an upgrade loses no packet, Pods stay and come', (t) =>
  underTraffic(t, AGENT, () => setImage(AGENT, `agent=${OTHER}tke-eni-agent:0.1.0`)),
);

test.serial('agents: a rollback loses no packet, Pods stay and come', (t) =>
  underTraffic(t, AGENT, () => kubeSystem('rollout', 'undo', AGENT)),
);

test.serial('ipamd: an upgrade loses no packet, Pods stay, and nodes get addresses for more', (t) =>
  underTraffic(t, IPAMD, () => setImage(IPAMD, `ipamd=${OTHER}tke-eni-ipamd:0.1.0`)),
);

test.serial('ipamd: a rollback loses no packet, Pods stay, and nodes get addresses for more', (t) =>
  underTraffic(t, IPAMD, () => kubeSystem('rollout', 'undo', IPAMD)),
);

for (const mode of ['per-pod', 'compact'])
  test.serial(`agents: a change of the rule mode to ${mode} loses no packet, Pods stay and come`, (t) =>
    underTraffic(t, AGENT, () => kubeSystem('set', 'env', AGENT, `TKE_ENI_RULE_MODE=${mode}`)),
  );

test.serial('upgrade: cloud, objects and kernels agree at the end', async (t) => {
  t.deepEqual(await auditCluster(running()), []);
});

/** Changes a workload while packets flow and Pods are asked for, and waits until the change is everywhere. */
async function underTraffic(t: ExecutionContext, workload: string, change: () => Promise<string>): Promise<void> {
  t.timeout(ROLLOUT_MS * 2);
  const cluster = running();
  const before = await facts(stay);
  const streams = await startStreams(cluster);
  try {
    t.regex(await change(), /image updated|rolled back|env updated/);
    const asked = await growWhile(rollout(cluster, workload));
    await rollout(cluster, 'deployment/grow', 'default');
    for (const [way, stream] of Object.entries(streams)) {
      const report = await stream.finish();
      t.log(`${way}: ${report.aToB.sent} and ${report.bToA.sent} numbers`);
      t.true(report.aToB.sent > RATE && report.bToA.sent > RATE, `${way}: packets flowed`);
      t.deepEqual(describeLoss(report), [], `${way}: packets were lost`);
    }
    const refused = (await podsOf(cluster, 'app=grow')).filter(({ phase }) => phase === 'Failed');
    t.log(`${asked} Pods were asked for meanwhile; kubelet refused ${refused.length}: ${await reasons('app=grow')}`);
    t.deepEqual(await facts(await podsOf(cluster, 'app=stay')), before, 'Pods that were there stayed as they were');
  } finally {
    await Promise.all(Object.values(streams).map((stream) => stream.close()));
  }
}

/** Asks for one Pod more each second until something is done, up to a number; returns how many. */
async function growWhile(deed: Promise<void>): Promise<number> {
  const over = new AbortController();
  const done = deed.finally(() => over.abort());
  const before = grown;
  while (!over.signal.aborted && grown < before + MOST_MORE) {
    grown++;
    await Promise.race([done, running().kubectl('scale', 'deployment/grow', `--replicas=${grown}`)]);
    await Promise.race([done, sleep(1_000)]);
  }
  await done;
  return grown - before;
}

/** Between Pods of one node, of two nodes, and of one to the outside. */
async function startStreams(cluster: RealCluster): Promise<Readonly<Record<string, Traffic>>> {
  const on = (node: string): SeenPod[] => stay.filter((pod) => pod.node === node);
  const [first, second, far] = [...on('node1'), ...on('node2')];
  if (first === undefined || second === undefined || far === undefined) throw new Error('not two Pods on node1');
  const [a, b, c] = await Promise.all([first, second, far].map((pod) => endOf(cluster, pod)));
  if (a === undefined || b === undefined || c === undefined) throw new Error('no ends');
  const { netns, ip } = cluster.cloud.vpc.outside;
  return {
    'on one node': await startTraffic(a, b, { rate: RATE, port: 7001 }),
    'across nodes': await startTraffic(a, c, { rate: RATE, port: 7002 }),
    'to the outside': await startTraffic(c, { netns, ip }, { rate: RATE, port: 7003 }),
  };
}

async function endOf(cluster: RealCluster, { name, uid, ip, node }: SeenPod): Promise<TrafficEnd> {
  const on = cluster.node(node);
  const sandbox = (await sandboxesOf(on)).find(({ podUid, isReady }) => podUid === uid && isReady);
  if (sandbox === undefined) throw new Error(`${name}: no sandbox on ${node}`);
  return { ip, netns: new NetnsView(name, on.machine.insidePath(sandbox.netns)) };
}

/** What must not change of Pods: who they are, their addresses, and that no container was started again. */
async function facts(pods: readonly SeenPod[]): Promise<readonly string[]> {
  const list = await running().kubectlJson('get', 'pods', ...pods.map(({ name }) => name));
  const items = isObject(list) && Array.isArray(list['items']) ? list['items'] : [];
  return items
    .map((pod) => {
      const restarts = at(pod, 'status', 'containerStatuses', 0, 'restartCount');
      return `${at(pod, 'metadata', 'name')} ${at(pod, 'status', 'podIP')} restarted ${restarts}`;
    })
    .sort();
}

async function reasons(selector: string): Promise<string> {
  const failed = ['--field-selector=status.phase=Failed', '-o', 'jsonpath={.items[*].status.reason}'];
  return running().kubectl('get', 'pods', '-l', selector, ...failed);
}

function kubeSystem(...args: readonly string[]): Promise<string> {
  return running().kubectl('-n', 'kube-system', ...args);
}

function setImage(workload: string, image: string): Promise<string> {
  return kubeSystem('set', 'image', workload, image);
}

async function rollout(cluster: RealCluster, workload: string, namespace = 'kube-system'): Promise<void> {
  const args = ['-n', namespace, 'rollout', 'status', workload, `--timeout=${ROLLOUT_MS}ms`];
  const { code, stdout, stderr } = await cluster.tryKubectl(args, { timeoutMs: ROLLOUT_MS + 10_000 });
  if (code !== 0) throw new Error(`${workload}: ${stdout}${stderr}\n${await cluster.kubectl('get', 'pods', '-A')}`);
}
