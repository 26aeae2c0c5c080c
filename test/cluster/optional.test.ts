import test from 'ava';
import { ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import { type KeyPair, makeKeyPair } from '../../sim/kube-api/pki.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitPods, deploymentManifest } from './pods.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';

const WEBHOOK = 'tke-eni-ip-webhook';
const SCHEDULER = 'tke-eni-ip-scheduler';
const SCHEDULER_USER = `system:serviceaccount:kube-system:${SCHEDULER}`;
const hostOf = (name: string): string => `${name}.kube-system.svc`;

const running = clusterOfFile(
  () => startRealCluster(),
  async (cluster) => {
    // The certificate is its own authority. The webhook makes its own.
    await cluster.apply(secretOf(SCHEDULER, await makeKeyPair(cluster.dir, SCHEDULER, { dns: [hostOf(SCHEDULER)] })));
    await cluster.deploy({ components: ['webhook', 'webhook-certificates', 'scheduler'] });
    await cluster.kubectl('-n', 'kube-system', 'rollout', 'status', `deployment/${WEBHOOK}`, '--timeout=120s');
  },
);

function secretOf(name: string, { cert, key }: KeyPair): string {
  const metadata = { name: `${name}-tls`, namespace: 'kube-system' };
  const stringData = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': cert };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls', metadata, stringData });
}

/** Tries a creation; returns the Pod as it would be stored. */
async function tried(cluster: RealCluster, name: string, ...flags: readonly string[]): Promise<unknown> {
  const json = ['--dry-run=server', '-o', 'json', ...flags];
  return JSON.parse(await cluster.kubectl('run', name, '--image=app:1', ...json));
}

const requestOf = (pod: unknown) => at(pod, 'spec', 'containers', 0, 'resources', 'requests', ENI_IP_RESOURCE);

test.serial('webhook: two replicas on two nodes answer the API server by their Service', async (t) => {
  const cluster = running();
  await waitUntil(async () => requestOf(await tried(cluster, 'probe').catch(() => undefined)) === '1', {
    what: 'the webhook is believed',
    timeoutMs: 60_000,
    everyMs: 500,
  });
  t.is(requestOf(await tried(cluster, 'bridge', `--annotations=${POD_ANNOTATION.networks}=tke-bridge`)), undefined);
});

test.serial('webhook: Pods of a Deployment that asks for nothing get addresses, and their request', async (t) => {
  const cluster = running();
  await cluster.apply(deploymentManifest('plain', 2, { eniIps: 0 }));
  const pods = await awaitPods(cluster, 'app=plain', 2);
  t.is(new Set(pods.map(({ ip }) => ip)).size, 2);
  const list = await cluster.kubectlJson('get', 'pods', '-l', 'app=plain');
  t.is(requestOf(at(list, 'items', 0)), '1');
});

test.serial('webhook: a rollout refuses no Pod', async (t) => {
  const cluster = running();
  let refused = 0;
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const pod = await tried(cluster, 'steady').catch(() => undefined);
      if (requestOf(pod) !== '1') refused += 1;
    }
  })();
  await cluster.kubectl('-n', 'kube-system', 'rollout', 'restart', `deployment/${WEBHOOK}`);
  await cluster.kubectl('-n', 'kube-system', 'rollout', 'status', `deployment/${WEBHOOK}`, '--timeout=180s');
  isOver = true;
  await asking;
  t.is(refused, 0);
});

test.serial(
  'scheduler: both replicas are ready, a rollout ends, and the documented command names the leader',
  async (t) => {
    const cluster = running();
    const inSystem = (...argv: readonly string[]) => cluster.kubectl('-n', 'kube-system', ...argv);
    const rolledOut = () => inSystem('rollout', 'status', `deployment/${SCHEDULER}`, '--timeout=120s');
    await rolledOut();
    await inSystem('rollout', 'restart', `deployment/${SCHEDULER}`);
    await rolledOut();
    const slices = await cluster.kubectlJson(
      '-n',
      'kube-system',
      'get',
      'endpointslices',
      '-l',
      `k8s-app=${SCHEDULER}`,
    );
    const endpoints = at(slices, 'items', 0, 'endpoints');
    const ready = (Array.isArray(endpoints) ? endpoints : []).filter((one) => at(one, 'conditions', 'ready') === true);
    t.is(ready.length, 2);
    const lock = ['get', 'configmap', `${SCHEDULER}-leader`, '-o'];
    const path = 'jsonpath={.metadata.annotations.control-plane\\.alpha\\.kubernetes\\.io/leader}';
    const pods = ready.map((one) => String(at(one, 'targetRef', 'name')));
    const leads = async () => {
      const holder = String(at(JSON.parse(await inSystem(...lock, path)), 'holderIdentity'));
      return pods.some((name) => holder.startsWith(`${name}_`));
    };
    await waitUntil(leads, { what: 'one of the new Pods leads', timeoutMs: 60_000, everyMs: 500 });
  },
);

test.serial('scheduler, webhook: nothing that they ask is refused, and they ask something', (t) => {
  const users = [SCHEDULER_USER, `system:serviceaccount:kube-system:${WEBHOOK}`];
  const asked = running()
    .auditLog()
    .filter((one) => users.includes(String(at(one, 'user', 'username'))));
  for (const user of users)
    t.true(
      asked.some((one) => at(one, 'user', 'username') === user),
      user,
    );
  const refused = asked.filter((one) => [401, 403].includes(Number(at(one, 'responseStatus', 'code'))));
  t.deepEqual(
    refused.map((one) => `${at(one, 'verb')} ${at(one, 'requestURI')}`),
    [],
  );
});
