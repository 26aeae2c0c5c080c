import { writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { ENI_IP_RESOURCE } from '../../crd/names.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, NODES, PODS, VPC_IP_CLAIMS, VPC_IPS } from '../../kube/resource-types.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { openTestClient } from '../kube/kube-scene.ts';
import { contractClient } from '../kube-api/contract/client.ts';
import { type RealApi, startRealApi } from '../kube-api/real-api.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { bindRole } from '../system/cluster.ts';
import {
  freePorts,
  leaderOf,
  makeExtenderCertificates,
  makeReplicaPod,
  openReadyDoor,
  Replica,
  startKubeScheduler,
} from './real-control-plane.ts';
import { claimOf, necOf, podOf, vipOf } from './scheduler-scene.ts';

const ROLE = 'tke-eni-ip-scheduler';
const assets = process.env['KUBE_ASSETS'];

/** Places of each node; the kubelets of all would take forty Pods. */
const PLACES = { n1: 18, n2: 18, n3: 10, n4: 10, n5: 4 } as const;
const ALL = Object.values(PLACES).reduce((sum, places) => sum + places, 0);
const STATIC = 40;
/** Their addresses are on n1 already. */
const KEPT = 10;
const POOL = 160;

async function makeNode(admin: KubeClient, name: string): Promise<void> {
  await admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  // Admission takes a new node for one that is not ready.
  await admin.patch(NODES, { name }, { kind: 'merge', body: { spec: { taints: null } } });
  const capacity = { cpu: '64', memory: '64Gi', pods: '250', [ENI_IP_RESOURCE]: '40' };
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' };
  const status = { capacity, allocatable: capacity, conditions: [ready] };
  await admin.patch(NODES, { name }, { kind: 'merge', body: { status }, subresource: 'status' });
}

async function makeCluster(admin: KubeClient): Promise<void> {
  await installKinds(admin);
  const created = async () => (await admin.listPage(NODE_ENI_CONFIGS, {}).catch(() => undefined)) !== undefined;
  await waitUntil(created, { what: 'the definitions serve', timeoutMs: 30_000, everyMs: 100 });
  const kept = Array.from({ length: KEPT }, (_, index) => [`10.1.0.${index + 10}`, `web-${index}`] as const);
  for (const [name, allocatable] of Object.entries(PLACES)) {
    await makeNode(admin, name);
    const marks = name === 'n1' ? Object.fromEntries(kept.map(([ip, pod]) => [ip, `default/${pod}`])) : {};
    const enis = [{ eniID: `eni-${name}0001`, kept: marks }];
    await admin.create(NODE_ENI_CONFIGS, necOf({ name, allocatable, enis }));
  }
  for (const [ip, pod] of kept) {
    await admin.create(VPC_IPS, vipOf(ip, pod));
    await admin.create(VPC_IP_CLAIMS, claimOf({ name: pod, ip, nodeName: 'n1' }));
  }
  for (let index = KEPT; index < STATIC; index++) await admin.create(VPC_IP_CLAIMS, claimOf({ name: `web-${index}` }));
}

async function open(t: ExecutionContext, folder: string) {
  const api = await startRealApi(folder);
  const dir = createTempDir('scheduler');
  const { client: admin, close } = openTestClient({ url: api.url, token: api.token, ca: api.ca });
  await makeCluster(admin);
  await bindRole(admin, ROLE);
  const kubeconfig = dir.join('extender.conf');
  writeFileSync(kubeconfig, renderKubeconfig({ url: api.url, token: await tokenOf(api), ca: api.ca }));
  const [a = 0, b = 0, c = 0, d = 0] = await freePorts(4);
  const lease = ['--leader-elect-lease=4s', '--leader-elect-renew=1s', '--leader-elect-retry=500ms'];
  const { flags, files } = await makeExtenderCertificates(dir.path);
  const own = [...lease, ...flags];
  const replicas = [
    new Replica('replica-1', kubeconfig, [a, b], own),
    new Replica('replica-2', kubeconfig, [c, d], own),
  ];
  for (const replica of replicas) await makeReplicaPod(admin, replica);
  const door = await openReadyDoor(replicas);
  const scheduler = startKubeScheduler(folder, dir.path, api, door.port, files);
  t.teardown(async () => {
    await scheduler.stop();
    door.close();
    for (const replica of replicas) await replica.stop();
    close();
    await api.close();
    dir.close();
  });
  return { admin, replicas, scheduler };
}

/** A token of the component's own ServiceAccount, which has the published ClusterRole and no other right. */
async function tokenOf(api: RealApi): Promise<string> {
  const accounts = '/api/v1/namespaces/kube-system/serviceaccounts';
  const client = contractClient(api.url, api.token, api.ca);
  await client.call('POST', accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ROLE } });
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const { body } = await client.call('POST', `${accounts}/${ROLE}/token`, request);
  const status = body['status'] as { token?: string } | undefined;
  if (status?.token === undefined) throw new Error(`no token: ${JSON.stringify(body)}`);
  return status.token;
}

type Seen = { readonly name: string; readonly nodeName: string; readonly message: string };

async function podsOf(admin: KubeClient): Promise<readonly Seen[]> {
  const { items } = await admin.listPage(PODS, { namespace: 'default' });
  return items.map((pod) => {
    // Pods of the API server.
    const { nodeName = '' } = pod['spec'] as { nodeName?: string };
    const { conditions = [] } = pod['status'] as { conditions?: { type: string; message?: string }[] };
    const message = conditions.find(({ type }) => type === 'PodScheduled')?.message ?? '';
    return { name: pod.metadata.name, nodeName, message };
  });
}

function bare(pod: KubeObject): KubeObject {
  const { uid: _uid, ...metadata } = pod.metadata;
  return { ...pod, metadata, spec: { ...(pod['spec'] as object), terminationGracePeriodSeconds: 0 } };
}

if (assets === undefined) {
  test.skip('a real kube-scheduler: 200 Pods at once and too few addresses (set KUBE_ASSETS to a folder with one)', () => {});
} else {
  test('a real kube-scheduler: as many of 200 Pods are bound as there are addresses, the extender killed twice', async (t) => {
    t.timeout(300_000);
    const { admin, replicas, scheduler } = await open(t, assets);
    await leaderOf(replicas);
    const names = [
      ...Array.from({ length: STATIC }, (_, index) => ({ name: `web-${index}`, isStatic: true })),
      ...Array.from({ length: POOL }, (_, index) => ({ name: `pool-${index}`, isStatic: false })),
    ];
    const explain = () =>
      `${scheduler.stderr.slice(-4_000)}\n${replicas.map(({ log }) => log.slice(-3_000)).join('\n')}`;
    const creating = Promise.all(names.map((words) => admin.create(PODS, bare(podOf(words)))));
    for (const atLeast of [10, 35]) {
      const has = async () => (await podsOf(admin)).filter(({ nodeName }) => nodeName !== '').length >= atLeast;
      await waitUntil(has, { what: `${atLeast} Pods are bound`, timeoutMs: 90_000, everyMs: 50, explain });
      const leader = await leaderOf(replicas);
      await leader.killAndStart();
    }
    await creating;
    const bound = (pods: readonly Seen[]) => pods.filter(({ nodeName }) => nodeName !== '');
    const isSettled = (pods: readonly Seen[]) =>
      bound(pods).length >= ALL &&
      pods.every(
        ({ nodeName, message }) => nodeName !== '' || message.includes('InsufficientIPorENI (need 1, free 0 of'),
      );
    const settled = await waitUntil(
      async () => {
        const pods = await podsOf(admin);
        return isSettled(pods) ? pods : undefined;
      },
      { what: 'all that can be bound are, and the others know why', timeoutMs: 180_000, everyMs: 500, explain },
    );

    t.is(settled.length, STATIC + POOL);
    t.is(bound(settled).length, ALL);
    const byNode = Map.groupBy(bound(settled), ({ nodeName }) => nodeName);
    t.deepEqual(Object.fromEntries([...byNode].map(([name, pods]) => [name, pods.length]).sort()), PLACES);
    for (let index = 0; index < KEPT; index++) {
      t.is(settled.find(({ name }) => name === `web-${index}`)?.nodeName, 'n1');
    }
    const { items: claims } = await admin.listPage(VPC_IP_CLAIMS, {});
    for (const { name, nodeName } of bound(settled).filter((pod) => pod.name.startsWith('web-'))) {
      const claim = claims.find(({ metadata }) => metadata.name === name);
      t.is((claim?.['spec'] as { nodeName?: string } | undefined)?.nodeName, nodeName, name);
    }

    const gone = bound(settled)
      .filter(({ name }) => name.startsWith('pool-'))
      .slice(0, 5);
    for (const { name } of gone) await admin.delete(PODS, { namespace: 'default', name });
    const isFull = async () => bound(await podsOf(admin)).length >= ALL;
    await waitUntil(isFull, { what: 'what became free is given to others', timeoutMs: 60_000, everyMs: 200, explain });
    t.is(bound(await podsOf(admin)).length, ALL);
  });
}
