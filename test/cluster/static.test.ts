import test, { type ExecutionContext } from 'ava';
import { POD_ANNOTATION } from '../../crd/names.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitPods, pingFrom, type SeenPod, statefulSetManifest } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { joinSuperNode, runOnSuperNode } from './workloads/super-node.ts';

const REPLICAS = 4;
const WEB = { selector: 'app=web', annotations: { [POD_ANNOTATION.deletePolicy]: 'Never' } };

const running = clusterOfFile(
  () => startRealCluster(),
  (cluster) => cluster.deploy({ ipamdSettings: { 'enable-static-ip': 'true', 'enable-ownerref': 'true' } }),
);

/** Addresses by the names of the Pods that have them. */
function ipsOf(pods: readonly SeenPod[]): Readonly<Record<string, string>> {
  return Object.fromEntries(pods.map(({ name, ip }) => [name, ip]).toSorted());
}

async function web(count = REPLICAS): Promise<readonly SeenPod[]> {
  return awaitPods(running(), WEB.selector, count, { timeoutMs: 120_000 });
}

/** Every Pod finds each next one. */
async function assertPodsLive(t: ExecutionContext, pods: readonly SeenPod[]): Promise<void> {
  for (const [index, pod] of pods.entries()) {
    const next = pods[(index + 1) % pods.length] ?? pod;
    t.true(await pingFrom(running(), pod, next.ip), `${pod.name} on ${pod.node} reaches ${next.name} on ${next.node}`);
  }
}

async function claimPhases(): Promise<Readonly<Record<string, string>>> {
  const list = at(await running().kubectlJson('get', 'vipc'), 'items');
  const claims: readonly unknown[] = Array.isArray(list) ? list : [];
  return Object.fromEntries(
    claims.map((claim) => [String(at(claim, 'metadata', 'name')), String(at(claim, 'status', 'phase'))]),
  );
}

let ips: Readonly<Record<string, string>> = {};

test.serial('kept addresses: a StatefulSet of the controller has them', async (t) => {
  await running().apply(statefulSetManifest('web', REPLICAS, { annotations: WEB.annotations }));
  const pods = await web();
  ips = ipsOf(pods);
  t.is(new Set(Object.values(ips)).size, REPLICAS);
  await assertPodsLive(t, pods);
});

test.serial('kept addresses: the same after a rolling update, while ipamd is rolled too', async (t) => {
  const cluster = running();
  const uids = (await web()).map(({ uid }) => uid);
  await cluster.kubectl('-n', 'kube-system', 'rollout', 'restart', 'deployment/tke-eni-ipamd');
  await cluster.kubectl('rollout', 'restart', 'statefulset/web');
  await cluster.kubectl('rollout', 'status', 'statefulset/web', '--timeout=240s');
  const pods = await web();
  t.false(pods.some(({ uid }) => uids.includes(uid)));
  t.deepEqual(ipsOf(pods), ips);
  await assertPodsLive(t, pods);
});

test.serial('kept addresses: they go with their Pods to the other node, and back', async (t) => {
  const cluster = running();
  for (const { name } of cluster.nodes) {
    await cluster.kubectl('cordon', name);
    await cluster.kubectl('delete', 'pods', '-l', WEB.selector, '--wait=false');
    await waitUntil(async () => (await web()).every(({ node }) => node !== name), {
      what: `no Pod on ${name}`,
      timeoutMs: 180_000,
      everyMs: 500,
    });
    const pods = await web();
    t.deepEqual(ipsOf(pods), ips, `off ${name}`);
    await assertPodsLive(t, pods);
    await cluster.kubectl('uncordon', name);
  }
});

test.serial('kept addresses: scaled down they wait, scaled up they are back', async (t) => {
  const cluster = running();
  await cluster.kubectl('scale', 'statefulset/web', '--replicas=1');
  await web(1);
  await waitUntil(async () => (await claimPhases())['web-3'] === 'Retained', {
    what: 'claim web-3 is retained',
    timeoutMs: 60_000,
    everyMs: 500,
  });
  await cluster.kubectl('scale', 'statefulset/web', `--replicas=${REPLICAS}`);
  t.deepEqual(ipsOf(await web()), ips);
});

test.serial('kept addresses: a Pod deleted by force has its address back', async (t) => {
  await running().kubectl('delete', 'pod', 'web-1', '--grace-period=0', '--force');
  const pods = await web();
  t.deepEqual(ipsOf(pods), ips);
  await assertPodsLive(t, pods);
});

test.serial(
  'kept addresses: a Pod takes its address to a super node, where the VPC reserves it, and back',
  async (t) => {
    t.timeout(600_000);
    const cluster = running();
    const [node = '', eklet] = [cluster.nodes[0]?.name, 'eklet-a1b2c3d4'];
    const reserved = () => [...cluster.cloud.host.model.state.reservedIps.reservations.values()].map(({ ip }) => ip);
    await joinSuperNode(cluster, eklet);
    const manifest = (nodeName: string) =>
      statefulSetManifest('roaming', 1, { annotations: WEB.annotations, spec: { nodeName } });
    const moveTo = async (nodeName: string) => {
      await cluster.apply(manifest(nodeName));
      // Nothing ends a Pod of the super node but this.
      await cluster.kubectl('delete', 'pod', 'roaming-0', '--grace-period=0', '--force');
    };
    await cluster.apply(manifest(node));
    const [first] = await awaitPods(cluster, 'app=roaming', 1, { timeoutMs: 120_000 });
    if (first === undefined) return t.fail();
    t.deepEqual(reserved(), []);
    await moveTo(eklet);
    t.deepEqual(await runOnSuperNode(cluster, 'roaming-0', eklet), { ip: first.ip, claim: 'default/roaming-0' });
    t.deepEqual(reserved(), [first.ip]);
    t.is(cluster.cloud.vpc.eniOf(first.ip), undefined);
    await cluster.kubectl('wait', 'vipc/roaming-0', '--for=condition=Published', '--timeout=50s');
    await moveTo(node);
    const [back] = await awaitPods(cluster, 'app=roaming', 1, { timeoutMs: 120_000 });
    t.like(back, { ip: first.ip, node });
    if (back !== undefined) t.true(await pingFrom(cluster, back, cluster.node(node).ip));
    await cluster.kubectl('delete', 'statefulset/roaming');
    await waitUntil(
      async () => claimPhases().then((phases) => phases['roaming-0'] === undefined && reserved().length === 0),
      {
        what: 'neither claim nor reservation of roaming-0',
        timeoutMs: 240_000,
        everyMs: 500,
      },
    );
    await cluster.kubectl('delete', 'node', eklet);
  },
);

test.serial('kept addresses: with the StatefulSet they go', async (t) => {
  t.timeout(300_000);
  const cluster = running();
  await cluster.kubectl('delete', 'statefulset/web');
  await waitUntil(async () => Object.keys(await claimPhases()).every((name) => !name.startsWith('web-')), {
    what: 'no claim of web',
    timeoutMs: 240_000,
    everyMs: 500,
  });
  const vips = await cluster.kubectl('get', 'vip', '-o', 'name');
  t.deepEqual(
    Object.values(ips).filter((ip) => vips.split('\n').includes(`vpcip.networking.tke.cloud.tencent.com/${ip}`)),
    [],
  );
});

test.serial('kept addresses: nothing that was asked for was refused', (t) => {
  t.deepEqual(refusedRequests(running()), []);
});
