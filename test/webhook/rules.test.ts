import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { parseAllDocuments } from 'yaml';
import { API_VERSION, POD_ANNOTATION } from '../../crd/names.ts';
import { readPodNetworkRequest } from '../../crd/pod-network-request.ts';
import { staticIpConfig } from '../../crd/static-ip-config.ts';
import { STATIC_IP_CONFIGS } from '../../kube/resource-types.ts';
import { decodeOrThrow, isRecord } from '../../runtime/decode.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import { type KubeScene, withKubeScene } from '../kube/kube-scene.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openWebhook, post, reviewOf, type WebhookScene } from './webhook-scene.ts';

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false } as const;
const POD = { metadata: { name: 'db-0', labels: { app: 'db' } }, spec: { containers: [{ name: 'db' }] } };
const RULE = { podLabels: { app: 'db' }, deletePolicy: 'Never' };

async function isKept(scene: WebhookScene): Promise<boolean> {
  const { text } = await post(scene, JSON.stringify(reviewOf(POD)));
  const response = at(JSON.parse(text), 'response');
  if (at(response, 'allowed') !== true) throw new Error(text);
  const patch: unknown = JSON.parse(Buffer.from(String(at(response, 'patch')), 'base64').toString());
  return Array.isArray(patch) && patch.some(({ path }) => path === '/metadata/annotations');
}

const create = ({ client }: KubeScene, namespace: string, name: string, spec: object) =>
  client.create(STATIC_IP_CONFIGS, {
    apiVersion: API_VERSION,
    kind: 'StaticIPConfig',
    metadata: { namespace, name },
    spec,
  });

async function withWebhook(
  t: ExecutionContext,
  run: (kube: KubeScene, webhook: WebhookScene) => Promise<void>,
  prepare: (kube: KubeScene) => Promise<void> = ({ client }) => installKinds(client),
): Promise<void> {
  await withKubeScene({}, async (kube) => {
    for (const name of ['shop', 'yard']) {
      await kube.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    await prepare(kube);
    const webhook = await openWebhook({}, kube.client);
    try {
      await run(kube, webhook);
    } finally {
      await webhook.close();
    }
  });
  t.pass();
}

test('rules: are followed as they come, change and go', (t) =>
  withWebhook(t, async (kube, scene) => {
    await waitUntil(() => scene.webhook.readiness() === undefined, { what: 'rules are read' });
    t.false(await isKept(scene));
    await create(kube, 'yard', 'all', { ...RULE, namespaces: ['*'] });
    await create(kube, 'kube-system', 'shop', { ...RULE, namespaces: ['shop'] });
    await waitUntil(() => isKept(scene), { what: 'the rule of the cluster is known' });
    // The Pod's own namespace goes first.
    await create(kube, 'shop', 'own', { ...RULE, deletePolicy: 'Immediate' });
    await waitUntil(async () => !(await isKept(scene)), { what: 'its own rule is known' });
    await kube.client.delete(STATIC_IP_CONFIGS, { namespace: 'shop', name: 'own' });
    await waitUntil(() => isKept(scene), { what: 'its own rule is gone' });
  }));

test('rules: those of another namespace say nothing, whatever they claim', (t) =>
  withWebhook(t, async (kube, scene) => {
    await create(kube, 'yard', 'all', { ...RULE, namespaces: ['*'] });
    await create(kube, 'yard', 'probe', RULE);
    const metrics = async () => (await fetch(`http://${scene.webhook.metricsAddress}/metrics`)).text();
    await waitUntil(async () => /static_ip_configs 2/.test(await metrics()), { what: 'both are known' });
    t.false(await isKept(scene));
  }));

test('rules: without their definition it serves, and follows them once ipamd has made it', (t) =>
  withWebhook(
    t,
    async (kube, scene) => {
      await waitUntil(() => scene.webhook.readiness() === undefined, { what: 'it serves without rules' });
      t.false(await isKept(scene));
      await installKinds(kube.client);
      await create(kube, 'shop', 'own', RULE);
      await waitUntil(() => isKept(scene), { what: 'the rule is known', timeoutMs: 30_000 });
    },
    async () => {},
  ));

test('rules: without the right to read them it serves, and says that they are not followed', (t) =>
  withWebhook(
    t,
    async ({ api }, scene) => {
      await waitUntil(() => scene.webhook.readiness() === undefined, { what: 'it serves without rules' });
      const { text } = await post(scene, JSON.stringify(reviewOf(POD)));
      t.true(at(JSON.parse(text), 'response', 'allowed'));
      const metrics = await (await fetch(`http://${scene.webhook.metricsAddress}/metrics`)).text();
      t.regex(metrics, /static_ip_configs_followed 0/);
      api.faults.clear();
      await waitUntil(() => isKept(scene), { what: 'the right is there', timeoutMs: 30_000 });
    },
    async (kube) => {
      await installKinds(kube.client);
      await create(kube, 'shop', 'own', RULE);
      kube.api.faults.add({ resources: ['staticipconfigs'], action: { kind: 'status', code: 403 } });
    },
  ));

test('rules: is not ready before it has read them, and goes on with them in an outage', (t) =>
  withWebhook(
    t,
    async ({ api }, scene) => {
      t.regex(scene.webhook.readiness() ?? '', /not read yet/);
      api.faults.clear();
      await waitUntil(() => isKept(scene), { what: 'the rule is known', timeoutMs: 30_000 });
      const { heal } = api.partition();
      t.true(await isKept(scene));
      t.is(scene.webhook.readiness(), undefined);
      heal();
    },
    async (kube) => {
      await installKinds(kube.client);
      await create(kube, 'shop', 'own', RULE);
      kube.api.faults.add({ resources: ['staticipconfigs'], action: { kind: 'status', code: 503 } });
    },
  ));

test('docs/static-ip.md: its examples are what the decoders take', (t) => {
  const page = readFileSync(new URL('../../docs/static-ip.md', import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text);
  const objects = blocks.flatMap((text) => parseAllDocuments(text).map((document): unknown => document.toJS()));
  const rules = objects.filter((one) => isRecord(one) && one['kind'] === 'StaticIPConfig');
  t.is(rules.length, 1);
  for (const rule of rules) t.notThrows(() => decodeOrThrow(staticIpConfig, rule, 'docs/static-ip.md'));
  const texts = JSON.stringify(objects);
  for (const name of [POD_ANNOTATION.networks, POD_ANNOTATION.deletePolicy, POD_ANNOTATION.eipAttributes]) {
    t.true(texts.includes(name), name);
  }
  const annotations = objects.flatMap((one) => [
    at(one, 'annotations'),
    at(one, 'spec', 'template', 'metadata', 'annotations'),
  ]);
  for (const one of annotations.filter(isRecord)) {
    t.deepEqual(readPodNetworkRequest(one as Readonly<Record<string, string>>).faults, []);
  }
});
