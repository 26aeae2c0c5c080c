import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { BACKEND_GATE_LABEL, BACKEND_READY_GATE, DIRECT_ACCESS_ANNOTATION, POD_ANNOTATION } from '../../crd/names.ts';
import { isObject, type JsonObject } from '../../sim/kube-api/object.ts';
import { createAll, requestToken, untilEstablished } from '../conf/cluster-scene.ts';
import { KUBERNETES_FOLDER, objectsOf, readResources } from '../conf/read-manifests.ts';
import { openTestClient } from '../kube/kube-scene.ts';
import { type Answer, type ContractClient, contractClient } from '../kube-api/contract/client.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import type { RealApi } from '../kube-api/real-api.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openWebhook } from './webhook-scene.ts';

const ENI_IP = 'tke.cloud.tencent.com/eni-ip';
const POLICY = 'tke.cloud.tencent.com/vpc-ip-claim-delete-policy';
const NETWORKS = 'tke.cloud.tencent.com/networks';
const SLEEP = POD_ANNOTATION.preStopSleep;
const GATE = 'components/load-balancer-gate';
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const RULES = '/apis/networking.tke.cloud.tencent.com/v1/namespaces/shop/staticipconfigs';

/** An API server that asks webhooks. */
type AskingApi = Pick<RealApi, 'url' | 'token' | 'ca' | 'close'>;

async function openScene(server: AskingApi) {
  const admin = contractClient(server.url, server.token, server.ca);
  const manifests = readResources(join(KUBERNETES_FOLDER, 'webhook'));
  const gate = readResources(join(KUBERNETES_FOLDER, GATE));
  const ours = (...kinds: readonly string[]) => manifests.filter(({ kind }) => kinds.includes(String(kind)));
  await createAll(admin, readResources(join(KUBERNETES_FOLDER, '../crd')));
  await createAll(admin, ours('ServiceAccount', 'ClusterRole', 'ClusterRoleBinding'));
  await createAll(admin, gate);
  await createAll(admin, ours('Deployment', 'Service', 'PodDisruptionBudget'));
  await untilEstablished(admin);
  for (const [name, labels] of [
    ['shop', {}],
    ['alone', { 'not-add-pod-eni-ip-limit': '' }],
  ] as const) {
    await admin.call('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  }
  const token = await requestToken(admin, 'tke-eni-ip-webhook');
  const { client, close: closeClient } = openTestClient({ url: server.url, token, ca: server.ca });
  const webhook = await openWebhook({ readinessGates: true, preStopSleep: true }, client);
  const configuration = withGate(ours('MutatingWebhookConfiguration')[0]);
  const answer = await admin.call('POST', `${WEBHOOKS}?fieldValidation=Strict`, reachable(configuration, webhook));
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  // Known to the API server only after a moment.
  const isAsked = async () => requestOf(await create(admin, 'shop', 'probe', {}, true)) === '1';
  await waitUntil(isAsked, { what: 'the webhook is asked', timeoutMs: 30_000, everyMs: 100 });
  const close = async () => {
    await webhook.close();
    closeClient();
    await server.close();
  };
  return { admin, webhook, close };
}

/** The manifest, with the entry that the component load-balancer-gate adds. */
function withGate(configuration: JsonObject | undefined): JsonObject {
  const [patch] = objectsOf(readFileSync(join(KUBERNETES_FOLDER, GATE, 'mutating-webhook-configuration.yaml'), 'utf8'));
  return { ...configuration, webhooks: [configuration, patch].flatMap((one) => at(one, 'webhooks')) };
}

/** The manifest, with an address instead of a Service, whose network there is none of here. */
function reachable(configuration: JsonObject, { port, pair }: { port: number; pair: { cert: string } }) {
  const hooks = at(configuration, 'webhooks');
  if (!Array.isArray(hooks)) throw new Error('no webhooks');
  const caBundle = Buffer.from(pair.cert).toString('base64');
  return {
    ...configuration,
    webhooks: hooks.filter(isObject).map((hook) => {
      const path = String(at(hook, 'clientConfig', 'service', 'path'));
      return { ...hook, clientConfig: { url: `https://127.0.0.1:${port}${path}`, caBundle } };
    }),
  };
}

function create(
  api: ContractClient,
  namespace: string,
  name: string,
  change: { readonly annotations?: object; readonly labels?: object; readonly spec?: object } = {},
  isDry = false,
): Promise<Answer> {
  const { spec = {}, ...metadata } = change;
  const containers = [{ name: 'app', image: 'app:1', resources: { limits: { cpu: '1' } } }];
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec: { containers, ...spec } };
  return api.call('POST', `/api/v1/namespaces/${namespace}/pods${isDry ? '?dryRun=All' : ''}`, pod);
}

const requestOf = ({ body }: Answer) => at(body, 'spec', 'containers', 0, 'resources', 'requests', ENI_IP);

/** Declares the tests of an API server that asks the webhook; the server is closed with them. */
export async function testAskedBy(name: string, start: () => Promise<AskingApi>): Promise<void> {
  const { admin, webhook, close } = await openScene(await start());
  test.after.always(close);

  test.serial(`${name}: stores Pods with what the webhook adds`, async (t) => {
    const answer = await create(admin, 'shop', 'plain');
    t.is(answer.status, 201);
    const resources = at(answer.body, 'spec', 'containers', 0, 'resources');
    t.deepEqual(resources, { limits: { cpu: '1', [ENI_IP]: '1' }, requests: { cpu: '1', [ENI_IP]: '1' } });
    t.is(at(answer.body, 'status', 'qosClass'), 'Burstable');
  });

  test.serial(`${name}: leaves other networks, the host network and labelled namespaces alone`, async (t) => {
    t.is(requestOf(await create(admin, 'shop', 'bridge', { annotations: { [NETWORKS]: 'tke-bridge' } })), undefined);
    t.is(requestOf(await create(admin, 'shop', 'host', { spec: { hostNetwork: true } })), undefined);
    t.is(requestOf(await create(admin, 'alone', 'plain')), undefined);
    t.is(requestOf(await create(admin, 'kube-system', 'plain')), undefined);
  });

  test.serial(`${name}: passes warnings on to whoever creates`, async (t) => {
    const { status, headers } = await create(admin, 'shop', 'slip', { annotations: { [POLICY]: 'never' } });
    t.is(status, 201);
    t.regex(String(headers['warning']), /299 - "tke-eni-ip-webhook: .*delete-policy: expected Never or Immediate/);
  });

  test.serial(`${name}: shows the webhook rules, by which it keeps addresses`, async (t) => {
    const rule = {
      apiVersion: 'networking.tke.cloud.tencent.com/v1',
      kind: 'StaticIPConfig',
      metadata: { name: 'db' },
      spec: { podLabels: { app: 'db' }, deletePolicy: 'Never' },
    };
    t.is((await admin.call('POST', `${RULES}?fieldValidation=Strict`, rule)).status, 201);
    const labels = { app: 'db' };
    const isKept = async () =>
      at((await create(admin, 'shop', 'db-0', { labels }, true)).body, 'metadata', 'annotations', POLICY) === 'Never';
    await waitUntil(isKept, { what: 'the rule is known', timeoutMs: 30_000, everyMs: 100 });
    t.is(at((await create(admin, 'shop', 'web-0', {}, true)).body, 'metadata', 'annotations', POLICY), undefined);
    t.is(webhook.webhook.readiness(), undefined);
  });

  test.serial(`${name}: stores the readiness gate of Pods that a Service with direct access selects`, async (t) => {
    const annotations = { [DIRECT_ACCESS_ANNOTATION]: 'true' };
    const ports = [{ port: 80, protocol: 'TCP' }];
    const service = {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', annotations } },
      spec: { type: 'LoadBalancer', selector: { app: 'web' }, ports },
    };
    t.is((await admin.call('POST', '/api/v1/namespaces/shop/services', service)).status, 201);
    const labels = { app: 'web' };
    const gatesOf = async (namespace: string, change: Parameters<typeof create>[3]) =>
      at((await create(admin, namespace, 'web-0', change, true)).body, 'spec', 'readinessGates');
    const gates = [{ conditionType: BACKEND_READY_GATE }];
    const isGated = async () => Array.isArray(await gatesOf('shop', { labels }));
    await waitUntil(isGated, { what: 'the Service is known', timeoutMs: 30_000, everyMs: 100 });
    t.deepEqual(await gatesOf('shop', { labels }), gates);
    t.deepEqual(await gatesOf('shop', { labels, spec: { readinessGates: gates } }), gates);
    t.is(await gatesOf('shop', { labels: { app: 'db' } }), undefined);
    t.is(await gatesOf('shop', { labels, spec: { hostNetwork: true } }), undefined);
    t.is(await gatesOf('shop', { labels: { ...labels, [BACKEND_GATE_LABEL]: 'disabled' } }), undefined);
    t.is(await gatesOf('kube-system', { labels }), undefined);
  });

  test.serial(
    `${name}: stores the readiness gate of Pods behind the Services of an Ingress with direct access`,
    async (t) => {
      const spec = { selector: { app: 'api' }, ports: [{ port: 80, protocol: 'TCP' }] };
      const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'api' }, spec };
      t.is((await admin.call('POST', '/api/v1/namespaces/shop/services', service)).status, 201);
      const backend = { service: { name: 'api', port: { number: 80 } } };
      const ingress = {
        ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
        metadata: { name: 'site', annotations: { 'ingress.cloud.tencent.com/direct-access': 'true' } },
        spec: { rules: [{ http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }] },
      };
      const path = '/apis/networking.k8s.io/v1/namespaces/shop/ingresses';
      t.is((await admin.call('POST', path, ingress)).status, 201);
      const gatesOf = async (app: string) =>
        at((await create(admin, 'shop', 'web-0', { labels: { app } }, true)).body, 'spec', 'readinessGates');
      const isGated = async () => Array.isArray(await gatesOf('api'));
      await waitUntil(isGated, { what: 'the Ingress is known', timeoutMs: 30_000, everyMs: 100 });
      t.is(await gatesOf('db'), undefined);
    },
  );

  test.serial(`${name}: stores the sleep that a Pod asks for, or warns`, async (t) => {
    const asking = (text: string) => create(admin, 'shop', 'slow', { annotations: { [SLEEP]: text } }, true);
    const { status, body } = await asking('15s');
    t.is(status, 201);
    t.deepEqual(at(body, 'spec', 'containers', 0, 'lifecycle'), { preStop: { sleep: { seconds: 15 } } });
    t.is(at(body, 'spec', 'terminationGracePeriodSeconds'), 45);
    const odd = await asking('a while');
    t.is(odd.status, 201);
    t.regex(String(odd.headers['warning']), /pre-stop-sleep: expected whole seconds from 1s to 5m/);
  });

  test.serial(`${name}: refuses Pods while nobody answers, but none of its own`, async (t) => {
    await webhook.webhook.close();
    const refused = await create(admin, 'shop', 'late');
    t.is(refused.status, 500);
    t.regex(String(refused.body['message']), /failed calling webhook "add-pod-eni-ip-limit\.tke\.cloud\.tencent\.com"/);
    t.is((await create(admin, 'kube-system', 'late')).status, 201);
  });
}
