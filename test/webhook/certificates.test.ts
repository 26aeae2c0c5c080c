import { join } from 'node:path';
import test from 'ava';
import { authoritiesOf, readCertificateSet } from '../../kube/certificates/certificate-set.ts';
import { MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS } from '../../kube/resource-types.ts';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { isRecord } from '../../runtime/decode.ts';
import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { createAll, requestToken, untilEstablished } from '../conf/cluster-scene.ts';
import { KUBERNETES_FOLDER, readResources } from '../conf/read-manifests.ts';
import { openTestClient } from '../kube/kube-scene.ts';
import { contractClient } from '../kube-api/contract/client.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { openWebhook, type WebhookScene } from './webhook-scene.ts';

const NAME = 'tke-eni-ip-webhook';
const SECRET = { namespace: 'kube-system', name: `${NAME}-certificates` };
const DAY_MS = 86_400_000;
const PODS = '/api/v1/namespaces/shop/pods?dryRun=All';
const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-0' },
  spec: { containers: [{ name: 'web', image: 'web:1' }] },
};

/** An API server with the objects of both components, and as many webhooks as clocks, with the rights of the manifests. */
async function openScene(clocks: readonly Clock[]) {
  const server = await startKubeApi({ authorization: 'rbac' });
  const admin = contractClient(server.url, server.addToken(ADMIN), '');
  const objects = ['webhook', 'components/webhook-certificates'].flatMap((path) =>
    readResources(join(KUBERNETES_FOLDER, path)),
  );
  await createAll(admin, readResources(join(KUBERNETES_FOLDER, '../crd')));
  await createAll(
    admin,
    objects.filter(({ kind }) => kind !== 'MutatingWebhookConfiguration'),
  );
  await untilEstablished(admin);
  await createAll(admin, [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }]);
  const { client, close: closeClient } = openTestClient({
    url: server.url,
    token: await requestToken(admin, NAME),
    ca: '',
  });
  const [manifest] = objects.filter(({ kind }) => kind === 'MutatingWebhookConfiguration');
  const hook = at(manifest, 'webhooks', 0);
  if (!isRecord(hook)) throw new Error('no webhook');
  const tls = { tlsSecret: SECRET.name, tlsNames: ['127.0.0.1'] };
  const webhooks: WebhookScene[] = [];
  // There before the webhooks, with an address that nobody listens on yet: their own follow when they are known.
  const configured = { ...manifest, webhooks: [{ ...hook, clientConfig: { url: 'https://127.0.0.1:1/' } }] };
  await createAll(admin, [configured]);
  await Promise.all(clocks.map(async (clock) => webhooks.push(await openWebhook(tls, client, clock))));
  const read = async () => client.get(MUTATING_WEBHOOK_CONFIGURATIONS, { name: NAME });
  /** Has the API server ask another replica. */
  const ask = async (index: number): Promise<void> => {
    const url = `https://127.0.0.1:${webhooks[index]?.port}/add-pod-eni-ip-limit`;
    const body = [{ op: 'replace', path: '/webhooks/0/clientConfig/url', value: url }];
    await client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, { name: NAME }, { kind: 'json', body });
  };
  const bundle = async () => String(at(await read(), 'webhooks', 0, 'clientConfig', 'caBundle') ?? '');
  const secret = async () => readCertificateSet((await client.get(SECRETS, SECRET))?.['data']);
  const close = async () => {
    for (const one of webhooks) await one.close();
    closeClient();
    await server.close();
  };
  return { server, admin, client, webhooks, ask, bundle, secret, close };
}

const base64 = (text: string) => Buffer.from(text).toString('base64');

test('webhook: two replicas make one certificate, and API servers trust both', async (t) => {
  const scene = await openScene([systemClock, systemClock]);
  t.teardown(scene.close);
  t.is(await scene.bundle(), base64(authoritiesOf(await scene.secret())));
  for (const index of [0, 1]) {
    await scene.ask(index);
    const { status, body } = await scene.admin.call('POST', PODS, POD);
    t.is(status, 201, JSON.stringify(body));
    t.is(at(body, 'spec', 'containers', 0, 'resources', 'requests', 'tke.cloud.tencent.com/eni-ip'), '1');
  }
});

test('webhook: no Pod is refused while certificates and authorities are made again, by one replica after the other', async (t) => {
  // The authority is made so long ago that it is replaced about now: handshakes go by the real time.
  let daysBefore = 9 * 365 + 0.25;
  const clock: Clock = { ...systemClock, nowMs: () => Date.now() - daysBefore * DAY_MS };
  const scene = await openScene([clock, clock]);
  t.teardown(scene.close);
  /** Sets the wall clock to some days before now, and lets the replicas look, one after the other. */
  const goTo = async (days: number): Promise<void> => {
    daysBefore = days;
    for (const [index, { webhook }] of scene.webhooks.entries()) {
      await webhook.checkCertificate();
      t.is(
        (await scene.secret()).server?.cert,
        webhook.servedCertificate(),
        `replica ${index} serves what the Secret has`,
      );
      await askBoth();
    }
  };
  const refused: unknown[] = [];
  let isAsking = false;
  const askBoth = async (): Promise<void> => {
    if (!isAsking) return;
    for (const index of [0, 1]) {
      await scene.ask(index);
      const { status, body } = await scene.admin.call('POST', PODS, POD);
      if (status !== 201) refused.push(body);
    }
  };
  await goTo(2 * 365);
  await goTo(365);
  const announced = await scene.secret();
  t.truthy(announced.next, 'the next authority is announced');
  await goTo(60.6);
  isAsking = true;
  await goTo(30.1);
  const before = await scene.secret();
  t.is(before.authority?.cert, announced.authority?.cert);
  await goTo(0.5);
  const renewed = await scene.secret();
  t.not(renewed.server?.cert, before.server?.cert, 'the certificate was renewed');
  await goTo(-0.9);
  const after = await scene.secret();
  t.is(after.authority?.cert, announced.next?.cert, 'the next authority signs');
  t.not(after.server?.cert, renewed.server?.cert);
  t.true(
    (await scene.bundle()) === base64(authoritiesOf(after)) && after.earlier.includes(announced.authority?.cert ?? ''),
  );
  t.deepEqual(refused, []);
});

test('webhook: without its Secret it serves on, says what to do, and goes on when it is there again', async (t) => {
  const scene = await openScene([systemClock]);
  t.teardown(scene.close);
  const [webhook] = scene.webhooks;
  if (webhook === undefined) return t.fail();
  const metric = async () => {
    const text = await (await fetch(`http://${webhook.webhook.metricsAddress}/metrics`)).text();
    return /_certificate_problem (\d)$/m.exec(text)?.[1];
  };
  const first = await scene.secret();
  const path = `/api/v1/namespaces/${SECRET.namespace}/secrets`;
  await scene.admin.call('DELETE', `${path}/${SECRET.name}`);
  await webhook.webhook.checkCertificate();
  t.is(await metric(), '1');
  await scene.ask(0);
  t.is((await scene.admin.call('POST', PODS, POD)).status, 201);
  await createAll(
    scene.admin,
    readResources(join(KUBERNETES_FOLDER, 'components/webhook-certificates')).filter(({ kind }) => kind === 'Secret'),
  );
  await webhook.webhook.checkCertificate();
  t.is(await metric(), '0');
  t.deepEqual(await scene.secret(), first);
});
