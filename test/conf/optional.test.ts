import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { EXTENDED_RESOURCES } from '../../crd/names.ts';
import { readSchedulerConfig } from '../../scheduler/config/options.ts';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { readWebhookConfig } from '../../webhook/options.ts';
import { REVIEW_PATH } from '../../webhook/serve-reviews.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { listOf, literalsOf, settingsInput } from './base-scene.ts';
import { KUBERNETES_FOLDER, objectsOf, readResources } from './read-manifests.ts';

const MS = 1_000;

/** What both have in common, by component: folder, name, label and how their settings are read. */
const COMPONENTS = {
  scheduler: {
    name: 'tke-eni-ip-scheduler',
    label: 'ip-scheduler',
    ports: [61_690, 61_691],
    kinds: ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Deployment', 'PodDisruptionBudget', 'Service'],
    read: (container: unknown, env: Record<string, string>) => {
      const outcome = readSchedulerConfig(settingsInput(container, env));
      return outcome.kind === 'run' ? { ...outcome.config, lastMs: outcome.config.shutdownGraceMs } : undefined;
    },
  },
  webhook: {
    name: 'tke-eni-ip-webhook',
    label: 'ip-webhook',
    ports: [61_692, 61_693],
    kinds: [
      'ServiceAccount',
      'ClusterRole',
      'ClusterRoleBinding',
      'Deployment',
      'PodDisruptionBudget',
      'Service',
      'MutatingWebhookConfiguration',
    ],
    read: (container: unknown, env: Record<string, string>) => {
      const outcome = readWebhookConfig(settingsInput(container, env));
      return outcome.kind === 'run' ? { ...outcome.config, lastMs: outcome.config.shutdownDelayMs } : undefined;
    },
  },
} as const;

for (const [folder, { name, label, ports, kinds, read }] of Object.entries(COMPONENTS)) {
  const objects = readResources(join(KUBERNETES_FOLDER, folder));
  const find = (kind: string): JsonObject | undefined => objects.find((one) => one['kind'] === kind);
  const pod = at(find('Deployment'), 'spec', 'template', 'spec');
  const container = at(pod, 'containers', 0);
  const config = read(container, literalsOf(folder, `${name}-settings`));

  test(`${folder}: its objects have one name and one label, and are nobody else's`, (t) => {
    t.deepEqual(
      objects.map(({ kind }) => kind),
      [...kinds],
    );
    for (const object of objects) {
      t.is(at(object, 'metadata', 'name'), name);
      t.is(at(object, 'metadata', 'labels', 'app.kubernetes.io/component'), label);
    }
    const selected = { 'app.kubernetes.io/name': 'tke-eni', 'k8s-app': name };
    t.deepEqual(at(find('Service'), 'spec', 'selector'), selected);
    t.deepEqual(at(find('Deployment'), 'spec', 'selector'), { matchLabels: selected });
    t.is(at(find('Deployment'), 'spec', 'template', 'metadata', 'labels', 'k8s-app'), name);
    t.deepEqual(at(find('ClusterRoleBinding'), 'roleRef', 'name'), name);
    t.deepEqual(at(find('ClusterRoleBinding'), 'subjects'), [
      { kind: 'ServiceAccount', name, namespace: 'kube-system' },
    ]);
    t.is(at(pod, 'serviceAccountName'), name);
  });

  test(`${folder}: its own reader takes the flags, and ports, probes and the Service ask where it listens`, (t) => {
    t.is(config?.listenAddress, `0.0.0.0:${ports[0]}`);
    t.is(config?.metricsAddress, `0.0.0.0:${ports[1]}`);
    t.deepEqual(
      listOf(at(container, 'ports')).map(({ name, containerPort }) => [name, containerPort]),
      [
        ['https', ports[0]],
        ['metrics', ports[1]],
      ],
    );
    t.is(at(find('Service'), 'spec', 'ports', 0, 'targetPort'), 'https');
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      t.is(at(container, probe, 'httpGet', 'port'), 'metrics');
      t.is(at(container, probe, 'httpGet', 'path'), probe === 'readinessProbe' ? '/readyz' : '/healthz');
    }
    t.true(Number(at(pod, 'terminationGracePeriodSeconds')) * MS >= (config?.lastMs ?? 0) + 10 * MS);
  });

  test(`${folder}: reads its certificate from a Secret that is mounted where it looks`, (t) => {
    t.is(at(pod, 'volumes', 0, 'secret', 'secretName'), `${name}-tls`);
    const [mount] = listOf(at(container, 'volumeMounts'));
    t.is(mount?.['name'], at(pod, 'volumes', 0, 'name'));
    t.is(mount?.['readOnly'], true);
    t.is(config?.tlsCertFile, `${String(mount?.['mountPath'])}/tls.crt`);
    t.is(config?.tlsPrivateKeyFile, `${String(mount?.['mountPath'])}/tls.key`);
    // 0440 of a group that is the process's.
    t.is(at(pod, 'volumes', 0, 'secret', 'defaultMode'), 0o440);
    t.is(at(pod, 'securityContext', 'fsGroup'), 65_532);
  });

  test(`${folder}: is nobody in particular, and may nothing on its node`, (t) => {
    t.like(at(pod, 'securityContext'), {
      runAsNonRoot: true,
      runAsUser: 65_532,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    t.deepEqual(at(container, 'securityContext'), {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    t.is(at(pod, 'hostPID'), undefined);
    t.is(at(pod, 'hostNetwork'), true);
    const terms = at(pod, 'affinity', 'podAntiAffinity', 'requiredDuringSchedulingIgnoredDuringExecution');
    t.deepEqual(terms, [
      {
        topologyKey: 'kubernetes.io/hostname',
        labelSelector: { matchLabels: { 'app.kubernetes.io/name': 'tke-eni', 'k8s-app': name } },
      },
    ]);
    t.is(at(find('Deployment'), 'spec', 'replicas'), 2);
  });
}

test('webhook: may list and watch rules, and nothing else', (t) => {
  const role = readResources(join(KUBERNETES_FOLDER, 'webhook')).find(({ kind }) => kind === 'ClusterRole');
  t.deepEqual(role?.['rules'], [
    { apiGroups: ['networking.tke.cloud.tencent.com'], resources: ['staticipconfigs'], verbs: ['list', 'watch'] },
  ]);
});

test('webhook: is asked for the creation of Pods outside kube-system and labelled namespaces, where it answers', (t) => {
  const [configuration] = readResources(join(KUBERNETES_FOLDER, 'webhook')).filter(
    ({ kind }) => kind === 'MutatingWebhookConfiguration',
  );
  const hook = at(configuration, 'webhooks', 0);
  const service = { namespace: 'kube-system', name: 'tke-eni-ip-webhook', path: REVIEW_PATH, port: 443 };
  t.deepEqual(at(hook, 'clientConfig', 'service'), service);
  t.deepEqual(at(hook, 'namespaceSelector', 'matchExpressions'), [
    { key: 'not-add-pod-eni-ip-limit', operator: 'DoesNotExist' },
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] },
  ]);
  t.deepEqual(at(hook, 'rules'), [
    { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'], scope: 'Namespaced' },
  ]);
  t.is(at(hook, 'sideEffects'), 'None');
  t.is(at(hook, 'failurePolicy'), 'Fail');
  t.deepEqual(at(hook, 'admissionReviewVersions'), ['v1']);
});

test('webhook-certificates: the webhook may read and write its own Secret, and the authority in its own configuration', (t) => {
  const objects = readResources(join(KUBERNETES_FOLDER, 'components/webhook-certificates'));
  const rulesOf = (kind: string) => objects.find((one) => one['kind'] === kind)?.['rules'];
  const name = 'tke-eni-ip-webhook';
  t.deepEqual(rulesOf('Role'), [
    { apiGroups: [''], resources: ['secrets'], resourceNames: [`${name}-certificates`], verbs: ['get', 'update'] },
  ]);
  t.deepEqual(rulesOf('ClusterRole'), [
    {
      apiGroups: ['admissionregistration.k8s.io'],
      resources: ['mutatingwebhookconfigurations'],
      resourceNames: [name],
      verbs: ['get', 'patch'],
    },
  ]);
  t.is(objects.find(({ kind }) => kind === 'Secret')?.['data'], undefined);
});

test('webhook: API servers refuse its configuration until an overlay gives it an authority', (t) => {
  const configuration = readResources(join(KUBERNETES_FOLDER, 'webhook')).find(
    ({ kind }) => kind === 'MutatingWebhookConfiguration',
  );
  const placeholder = String(at(configuration, 'webhooks', 0, 'clientConfig', 'caBundle'));
  // What is no base64 is refused as a whole; test/docs/real-api.test.ts tries it.
  t.notRegex(placeholder, /^[A-Za-z0-9+/=]*$/);
  t.regex(placeholder, /docs\/static-ip\.md/);
});

test('scheduler: kube-scheduler is told of the Service by the name in its certificate, and of every resource of ours', (t) => {
  const path = join(KUBERNETES_FOLDER, 'scheduler/kube-scheduler-configuration.yaml');
  const [configuration] = objectsOf(readFileSync(path, 'utf8'));
  const extender = at(configuration, 'extenders', 0);
  t.is(at(extender, 'urlPrefix'), 'https://tke-eni-ip-scheduler.kube-system.svc');
  const service = readResources(join(KUBERNETES_FOLDER, 'scheduler')).find(({ kind }) => kind === 'Service');
  t.is(at(service, 'spec', 'ports', 0, 'port'), 443);
  t.deepEqual(
    listOf(at(extender, 'managedResources')).map(({ name }) => name),
    [...EXTENDED_RESOURCES],
  );
  t.is(at(extender, 'ignorable'), false);
});

test('scheduler: answers kube-scheduler alone, by the certificate that the example of its configuration names', (t) => {
  const folder = join(KUBERNETES_FOLDER, 'scheduler');
  const deployment = readResources(folder).find(({ kind }) => kind === 'Deployment');
  const container = at(deployment, 'spec', 'template', 'spec', 'containers', 0);
  const config = COMPONENTS.scheduler.read(container, literalsOf('scheduler', 'tke-eni-ip-scheduler-settings'));
  t.is(config?.clientCaFile, '/etc/tke-eni-ip-scheduler/tls/ca.crt');
  t.deepEqual(config?.clientAllowedNames, ['system:kube-scheduler']);
  t.false(config?.allowAnonymousLoopback);
  const [configuration] = objectsOf(readFileSync(join(folder, 'kube-scheduler-configuration.yaml'), 'utf8'));
  t.deepEqual(at(configuration, 'extenders', 0, 'tlsConfig'), {
    caFile: '/etc/kubernetes/tke-eni-ip-scheduler-ca.crt',
    certFile: '/etc/kubernetes/tke-eni-ip-scheduler-client.crt',
    keyFile: '/etc/kubernetes/tke-eni-ip-scheduler-client.key',
  });
});

test('scheduler: a rollout takes one replica at a time, as both are ready', (t) => {
  const objects = readResources(join(KUBERNETES_FOLDER, 'scheduler'));
  const deployment = objects.find(({ kind }) => kind === 'Deployment');
  t.deepEqual(at(deployment, 'spec', 'strategy', 'rollingUpdate'), { maxSurge: 0, maxUnavailable: 1 });
  const budget = objects.find(({ kind }) => kind === 'PodDisruptionBudget');
  t.is(at(budget, 'spec', 'maxUnavailable'), 1);
  t.deepEqual(at(budget, 'spec', 'selector'), at(deployment, 'spec', 'selector'));
});
