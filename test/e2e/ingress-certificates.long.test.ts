// A certificate of an Ingress is renewed under load. Long: Secrets are read each minute.
import { readFileSync } from 'node:fs';
import test from 'ava';
import { ENI_IP_RESOURCE } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { SECRETS, SERVICES } from '../../kube/resource-types.ts';
import { type KeyPair, makeKeyPair } from '../../sim/kube-api/pki.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type BalancedSystem, balanceSystem } from '../system/balanced/balanced-system.ts';
import { POD_NAMESPACE } from '../system/cluster.ts';
import { createSystem } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

const HOST = 'shop.example.com';
const SECRET = 'shop-tls';
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: true } as const;
const ROLE = { name: 'tke-eni-ingress-certificates', namespace: POD_NAMESPACE };
const ACCOUNT = { kind: 'ServiceAccount', name: 'tke-cloud-controller-manager', namespace: 'kube-system' };
const READ_MS = 100_000;

test('a Secret is renewed: the new certificate is shown, and no handshake fails', async (t) => {
  t.timeout(600_000);
  const system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'client' }], joinsAll: false, ipamds: 1 });
  t.teardown(() => cluster?.close() ?? system.close());
  let cluster: BalancedSystem | undefined;
  await system.join('n1');
  cluster = await balanceSystem(system, [system.node('n1')], { flags: { ingress: 'clb' } });
  await system.node('n1').awaitReady();
  const folder = createTempDir('shop');
  t.teardown(() => folder.close());
  const pairs = await Promise.all(['a', 'b', 'c'].map((name) => makeKeyPair(folder.path, name, { dns: [HOST] })));
  const [first, second, third] = pairs;
  if (first === undefined || second === undefined || third === undefined) throw new Error('a certificate is missing');
  const { admin } = system.cluster;

  await grantSecret(cluster);
  await admin.create(SECRETS, secretOf(first));
  const marks = { labels: { app: 'shop' }, resources: [ENI_IP_RESOURCE] };
  for (const name of ['shop-1', 'shop-2']) await cluster.serve(await system.node('n1').runPod(name, { marks }));
  const spec = { selector: { app: 'shop' }, ports: [{ port: 80 }] };
  await admin.create(SERVICES, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'shop', namespace: POD_NAMESPACE },
    spec,
  });
  const vip = await cluster.balanceIngress(ingress());
  await awaitShown(cluster, first);

  const { netns } = system.cloud.vpc.node('client');
  const answers = [
    'curl',
    '--silent',
    '--cacert',
    first.certPath,
    '--resolve',
    `${HOST}:443:${vip}`,
    `https://${HOST}/`,
  ];
  await waitUntil(async () => (await netns.tryRun(answers)).code === 0, {
    ...{ what: 'an answer by HTTPS', timeoutMs: 60_000, everyMs: 200 },
    explain: () => `${cluster?.targets().join('\n')}\n${cluster?.logs()}`,
  });
  const script = new URL('../vpc/clb/handshake-client.ts', import.meta.url).pathname;
  const client = netns.start([process.execPath, script, vip, HOST, '2', ...pairs.map(({ certPath }) => certPath)]);
  t.teardown(() => client.stop('SIGKILL'));
  const ref = { namespace: POD_NAMESPACE, name: SECRET };
  await admin.patch(SECRETS, ref, { kind: 'merge', body: { data: dataOf(second) } });
  await awaitShown(cluster, second);
  await admin.patch(SECRETS, ref, { kind: 'merge', body: { data: dataOf(third) } });
  await awaitShown(cluster, third);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  client.writeLine('end');
  await client.exited;

  const { handshakes, failures, serials, kept } = JSON.parse(client.stdout);
  t.deepEqual(failures, [], client.stderr);
  t.is(serials, 3, 'each certificate was seen');
  t.true(handshakes > 100 && kept > 100, `${handshakes} handshakes, ${kept} requests on one connection`);
  t.is(system.cloud.host.model.state.certificates.all().length, 3, 'one upload for each');
  const texts = [cluster.logs(), JSON.stringify(system.cluster.server.objects('events', ''))];
  for (const { keyPath } of pairs) {
    const [, line = ''] = readFileSync(keyPath, 'utf8').split('\n');
    t.true(line.length > 40);
    t.false(
      texts.some((text) => text.includes(line)),
      'a key is in a log or an event',
    );
  }
});

/** Lets the controller get the Secret, as docs/cloud-controller-manager.md says. */
async function grantSecret({ system }: BalancedSystem): Promise<void> {
  const { admin } = system.cluster;
  const apiVersion = `${RBAC.group}/${RBAC.version}`;
  const rules = [{ apiGroups: [''], resources: ['secrets'], resourceNames: [SECRET], verbs: ['get'] }];
  const roles = { ...RBAC, plural: 'roles', kind: 'Role' };
  await admin.create(roles, { apiVersion, kind: 'Role', metadata: ROLE, rules });
  await admin.create(
    { ...RBAC, plural: 'rolebindings', kind: 'RoleBinding' },
    {
      ...{ apiVersion, kind: 'RoleBinding', metadata: ROLE, subjects: [ACCOUNT] },
      roleRef: { apiGroup: RBAC.group, kind: 'Role', name: ROLE.name },
    },
  );
}

function secretOf(pair: KeyPair): KubeObject {
  const metadata = { name: SECRET, namespace: POD_NAMESPACE };
  return { apiVersion: 'v1', kind: 'Secret', metadata, ...{ type: 'kubernetes.io/tls', data: dataOf(pair) } };
}

function dataOf({ cert, key }: KeyPair) {
  const encode = (text: string): string => Buffer.from(text).toString('base64');
  return { 'tls.crt': encode(cert), 'tls.key': encode(key) };
}

function ingress() {
  const annotations = {
    'kubernetes.io/ingress.class': 'qcloud',
    'kubernetes.io/ingress.subnetId': POD_SUBNET.subnetId,
    'ingress.cloud.tencent.com/direct-access': 'true',
  };
  const backend = { service: { name: 'shop', port: { number: 80 } } };
  const paths = [{ path: '/', pathType: 'Prefix', backend }];
  const spec = { rules: [{ host: HOST, http: { paths } }], tls: [{ hosts: [HOST], secretName: SECRET }] };
  return { name: 'shop', annotations, spec };
}

/** Waits until the listener shows a certificate. */
async function awaitShown({ system, logs }: BalancedSystem, { cert }: KeyPair): Promise<void> {
  const { state } = system.cloud.host.model;
  const isShown = (): boolean => {
    const uploaded = state.certificates.all().filter(({ chain }) => chain.trim() === cert.trim());
    const layers = [...state.clb.balancers().values()].flatMap(({ listeners }) =>
      [...listeners.values()].map(({ layer7 }) => layer7),
    );
    const shown = layers.flatMap((layer) => [...(layer?.domains.values() ?? [])].flatMap(({ certIds }) => certIds));
    return uploaded.some(({ certId }) => shown.includes(certId));
  };
  await waitUntil(isShown, { what: 'the certificate', timeoutMs: READ_MS, everyMs: 200, explain: logs });
}
