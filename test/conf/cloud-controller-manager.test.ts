import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { readCcmConfig } from '../../cloud-controller-manager/config/ccm-config.ts';
import { INGRESS_CONTROLLER } from '../../cloud-controller-manager/ingresses/decide-ingress.ts';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { blockOf } from '../cluster/doc-commands.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { listOf, literalsOf, settingsInput } from './base-scene.ts';
import { KUBERNETES_FOLDER, objectsOf, readResources } from './read-manifests.ts';
import { renderExample } from './render-example.ts';

const FOLDER = 'cloud-controller-manager';
const NAME = 'tke-cloud-controller-manager';
const OBJECTS = readResources(join(KUBERNETES_FOLDER, FOLDER));
const find = (kind: string): JsonObject | undefined => OBJECTS.find((one) => one['kind'] === kind);
const POD = at(find('Deployment'), 'spec', 'template', 'spec');
const CONTAINER = at(POD, 'containers', 0);

test('cloud-controller-manager: its objects have one label, and one name but for the published role', (t) => {
  t.deepEqual(
    OBJECTS.map(({ kind }) => kind),
    ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Deployment', 'PodDisruptionBudget'],
  );
  for (const object of OBJECTS) {
    t.is(at(object, 'metadata', 'name'), object['kind'] === 'ClusterRole' ? 'cloud-controller-manager' : NAME);
    t.is(at(object, 'metadata', 'labels', 'app.kubernetes.io/component'), FOLDER);
  }
  t.is(at(find('ClusterRoleBinding'), 'roleRef', 'name'), 'cloud-controller-manager');
  t.deepEqual(at(find('ClusterRoleBinding'), 'subjects'), [
    { kind: 'ServiceAccount', name: NAME, namespace: 'kube-system' },
  ]);
  const selected = { 'app.kubernetes.io/name': 'tke-eni', 'k8s-app': NAME };
  t.deepEqual(at(find('Deployment'), 'spec', 'selector'), { matchLabels: selected });
  t.is(at(find('Deployment'), 'spec', 'template', 'metadata', 'labels', 'k8s-app'), NAME);
  t.is(at(POD, 'serviceAccountName'), NAME);
});

test('cloud-controller-manager: comes up on the first node of a cluster, before there is a network', (t) => {
  t.is(at(POD, 'hostNetwork'), true);
  t.is(at(POD, 'dnsPolicy'), 'Default');
  const tolerated = listOf(at(POD, 'tolerations')).map((one) => [one['key'], one['operator'], one['effect']]);
  for (const key of [
    'node.cloudprovider.kubernetes.io/uninitialized',
    'node.kubernetes.io/not-ready',
    'node.kubernetes.io/network-unavailable',
    'node-role.kubernetes.io/control-plane',
  ]) {
    // Without an effect: also NoExecute of a node that is not ready yet.
    t.deepEqual(
      tolerated.filter(([name]) => name === key),
      [[key, 'Exists', undefined]],
    );
  }
});

test('cloud-controller-manager: its own reader takes the flags, and probes ask where it listens', (t) => {
  const outcome = readCcmConfig(settingsInput(CONTAINER, literalsOf(FOLDER, `${NAME}-settings`)));
  const config = outcome.kind === 'run' ? outcome.config : undefined;
  t.like(config, { metricsAddress: '0.0.0.0:61694', namespace: 'kube-system', leaderElect: true });
  t.is(config?.leaderElectLock, 'endpoints');
  t.deepEqual(
    listOf(at(CONTAINER, 'ports')).map(({ name, containerPort }) => [name, containerPort]),
    [['metrics', 61_694]],
  );
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    t.is(at(CONTAINER, probe, 'httpGet', 'port'), 'metrics');
    t.is(at(CONTAINER, probe, 'httpGet', 'path'), probe === 'readinessProbe' ? '/readyz' : '/healthz');
  }
});

test('cloud-controller-manager: is nobody in particular, and may nothing on its node', (t) => {
  t.like(at(POD, 'securityContext'), {
    runAsNonRoot: true,
    runAsUser: 65_532,
    seccompProfile: { type: 'RuntimeDefault' },
  });
  t.deepEqual(at(CONTAINER, 'securityContext'), {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  t.is(at(find('Deployment'), 'spec', 'replicas'), 2);
});

test('cloud-controller-manager: the IngressClass of the component is the one that is served, and Secrets are granted by no ClusterRole', (t) => {
  const objects = readResources(join(KUBERNETES_FOLDER, 'components/ingresses'));
  t.deepEqual(
    objects.filter(({ kind }) => kind === 'IngressClass').map((one) => [at(one, 'metadata', 'name'), at(one, 'spec')]),
    [['qcloud', { controller: INGRESS_CONTROLLER }]],
  );
  const rules = objects.flatMap((one) => listOf(at(one, 'rules')));
  t.true(rules.length > 0 && rules.every((rule) => !JSON.stringify(rule).includes('secrets')));
});

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

(hasKubectl ? test : test.skip)(
  'docs/cloud-controller-manager.md: the patch of its page sets what the Deployment gets',
  (t) => {
    const page = readFileSync(new URL('../../docs/cloud-controller-manager.md', import.meta.url), 'utf8');
    const patch = at(objectsOf(blockOf(page, 'yaml', 'Installing it'))[0], 'patches', 0, 'patch');
    const objects = renderExample([FOLDER], { patches: [String(patch)] });
    const settings = objects.find((one) => String(at(one, 'metadata', 'name')).startsWith(`${NAME}-settings-`));
    t.like(settings, {
      data: {
        TKE_ENI_LOG_LEVEL: 'info',
        TKE_ENI_REGION: 'ap-guangzhou',
        TKE_ENI_ENDPOINT: '*.internal.tencentcloudapi.com',
        TKE_ENI_VPC_ID: 'vpc-a1b2c3d4',
      },
      immutable: true,
    });
    const deployment = objects.find((one) => one['kind'] === 'Deployment' && at(one, 'metadata', 'name') === NAME);
    const container = at(deployment, 'spec', 'template', 'spec', 'containers', 0);
    t.is(at(container, 'envFrom', 0, 'configMapRef', 'name'), at(settings, 'metadata', 'name'));
  },
);
