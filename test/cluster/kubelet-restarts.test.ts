import { existsSync, readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitServing, ENI_IP_RESOURCE } from './deploy.ts';
import { awaitPods, deploymentManifest, pingFrom, podManifest, podsOf } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';

const NODE = 'node1';
const RESTARTS = 10;
const STEADY = 4;
const AGENT = 'k8s-app=tke-eni-agent';
const PLUGINS = '/var/lib/kubelet/device-plugins';
const SOCKET = `${PLUGINS}/tke-eni-ip.sock`;
const CHECKPOINT = `${PLUGINS}/kubelet_internal_checkpoint`;

const running = clusterOfFile(
  () => startRealCluster({ nodes: [{ name: NODE }] }),
  async (cluster) => {
    await cluster.deploy();
    await cluster.apply(deploymentManifest('steady', STEADY));
    await awaitPods(cluster, 'app=steady', STEADY);
  },
);

/** What a restart of others must not change of Pods: who they are, where, since when, and how often they started. */
async function identities(selector: string): Promise<readonly JsonObject[]> {
  const list = await running().kubectlJson('get', 'pods', '-l', selector);
  const items = isObject(list) && Array.isArray(list['items']) ? list['items'].filter(isObject) : [];
  return items.map((pod) => ({
    name: at(pod, 'metadata', 'name'),
    uid: at(pod, 'metadata', 'uid'),
    phase: at(pod, 'status', 'phase'),
    reason: at(pod, 'status', 'reason'),
    ip: at(pod, 'status', 'podIP'),
    restarts: at(pod, 'status', 'containerStatuses', 0, 'restartCount'),
    container: at(pod, 'status', 'containerStatuses', 0, 'containerID'),
    since: at(pod, 'status', 'containerStatuses', 0, 'state', 'running', 'startedAt'),
  }));
}

async function nodeStatus(): Promise<JsonObject> {
  const status = at(await running().kubectlJson('get', 'node', NODE), 'status');
  return isObject(status) ? status : {};
}

/** Devices that the node's status has, and when its kubelet last said something. */
async function seenOfNode() {
  const status = await nodeStatus();
  const conditions = Array.isArray(status['conditions']) ? status['conditions'].filter(isObject) : [];
  return {
    capacity: Number(at(status, 'capacity', ENI_IP_RESOURCE) ?? 0),
    allocatable: Number(at(status, 'allocatable', ENI_IP_RESOURCE) ?? 0),
    heartbeat: String(conditions.find((one) => one['type'] === 'Ready')?.['lastHeartbeatTime']),
  };
}

/** Ids of devices by Pod, in kubelet's own file. @see kubelet's checkpoint of the device manager */
function checkpointed(): ReadonlyMap<string, string> {
  const node = running().node(NODE);
  const found = JSON.parse(readFileSync(node.machine.insidePath(CHECKPOINT), 'utf8'));
  const entries = at(found, 'Data', 'PodDeviceEntries');
  const held = Array.isArray(entries) ? entries.filter((one) => at(one, 'ResourceName') === ENI_IP_RESOURCE) : [];
  return new Map(held.map((one) => [String(at(one, 'PodUID')), JSON.stringify(at(one, 'DeviceIDs'))]));
}

/** Ends the kubelet, lets something be done, starts it, and waits for the status that it writes first. */
async function restartKubelet(whileDown: () => Promise<unknown> = async () => undefined): Promise<void> {
  const { kubelet } = running().node(NODE);
  await kubelet.kill();
  await whileDown();
  // Its times are whole seconds.
  const downAtMs = Date.now();
  kubelet.start();
  await waitUntil(async () => Date.parse((await seenOfNode()).heartbeat) > downAtMs, {
    what: 'a status of the new kubelet',
    timeoutMs: 60_000,
    everyMs: 100,
    explain: () => running().node(NODE).logs(),
  });
}

async function awaitCapacity(wanted: number): Promise<void> {
  let last = '';
  await waitUntil(
    async () => {
      const seen = await seenOfNode();
      last = JSON.stringify(seen);
      return seen.capacity === wanted && seen.allocatable === wanted;
    },
    {
      what: `${wanted} devices`,
      timeoutMs: 60_000,
      everyMs: 200,
      explain: () => `${last}\n${running().node(NODE).logs()}`,
    },
  );
}

/** A new Pod is admitted, reaches a steady one, and goes. */
async function tryNewPod(t: ExecutionContext, name: string): Promise<void> {
  const cluster = running();
  // Bound by us: the kubelet is asked at once, whatever the node's status says.
  await cluster.apply(podManifest(name, { spec: { nodeName: NODE } }));
  const [pod] = await awaitPods(cluster, `app=${name}`, 1);
  const [peer] = await podsOf(cluster, 'app=steady');
  if (pod === undefined || peer === undefined) return t.fail('no Pods');
  t.true(await pingFrom(cluster, pod, peer.ip), name);
  await cluster.kubectl('delete', 'pod', name, '--wait', '--timeout=60s');
}

test.serial(
  'ten restarts of the kubelet: devices are there with its next status, Pods stay, new ones are admitted',
  async (t) => {
    const before = await identities('app=steady');
    const { capacity } = await seenOfNode();
    const held = checkpointed();
    t.is(before.length, STEADY);
    t.true(capacity >= STEADY && held.size >= STEADY, `${capacity} devices, ${held.size} held`);
    for (let round = 1; round <= RESTARTS; round++) {
      await restartKubelet();
      await awaitCapacity(capacity);
      await tryNewPod(t, `new-${round}`);
      t.deepEqual(await identities('app=steady'), before, `restart ${round}`);
      const now = checkpointed();
      for (const { uid } of before)
        t.is(now.get(String(uid)), held.get(String(uid)), `devices of ${uid} in kubelet's file`);
    }
    const events = await running().kubectlJson(
      'get',
      'events',
      '-A',
      '--field-selector=reason=UnexpectedAdmissionError',
    );
    t.deepEqual(at(events, 'items'), []);
  },
);

test.serial(
  'a kubelet that restarts while no agent runs: Pods stay, and new ones come when the agent is back',
  async (t) => {
    const cluster = running();
    const before = await identities('app=steady');
    const { capacity } = await seenOfNode();
    const [agent] = await podsOf(cluster, AGENT, 'kube-system');
    // No node has this label: the DaemonSet takes its Pod away.
    const selector = (value: string) =>
      JSON.stringify({ spec: { template: { spec: { nodeSelector: { 'tke-test/no-agent': value } } } } });
    const patch = (body: string) =>
      cluster.kubectl('-n', 'kube-system', 'patch', 'daemonset', 'tke-eni-agent', '-p', body);
    await patch(selector('here'));
    await waitUntil(async () => (await podsOf(cluster, AGENT, 'kube-system')).length === 0, {
      what: 'the end of the agent',
      timeoutMs: 90_000,
      everyMs: 300,
    });
    await restartKubelet();
    // kubelet knows the resource by its file, and that nobody serves it.
    await awaitCapacity(0);
    t.deepEqual(await identities('app=steady'), before, 'Pods of before, while no agent runs');
    await patch(JSON.stringify({ spec: { template: { spec: { nodeSelector: { 'tke-test/no-agent': null } } } } }));
    await waitUntil(
      async () => (await podsOf(cluster, AGENT, 'kube-system')).some((pod) => pod.isReady && pod.uid !== agent?.uid),
      {
        what: 'the agent',
        timeoutMs: 90_000,
        everyMs: 300,
        explain: () => cluster.node(NODE).logs(),
      },
    );
    await awaitServing(cluster);
    await awaitCapacity(capacity);
    await tryNewPod(t, 'after-agent');
    t.deepEqual(await identities('app=steady'), before, 'Pods of before, when the agent is back');
  },
);

test.serial(
  'a socket of the device plugin that somebody removes: it is made again, and Pods are admitted',
  async (t) => {
    const cluster = running();
    const node = cluster.node(NODE);
    const before = await identities('app=steady');
    const { capacity } = await seenOfNode();
    await node.exec(['rm', SOCKET]);
    await waitUntil(() => existsSync(node.machine.insidePath(SOCKET)), {
      what: SOCKET,
      timeoutMs: 30_000,
      explain: () => node.logs(),
    });
    await awaitCapacity(capacity);
    await tryNewPod(t, 'after-socket');
    t.deepEqual(await identities('app=steady'), before);
  },
);
