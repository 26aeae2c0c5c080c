import { join } from 'node:path';
import test from 'ava';
import { readCcmConfig } from '../../cloud-controller-manager/config/ccm-config.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import type { JsonObject } from '../kube-api/object.ts';
import { listOf, literalsOf, settingsInput } from './base-scene.ts';
import { KUBERNETES_FOLDER, readResources } from './read-manifests.ts';

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
  const selected = { 'k8s-app': NAME };
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
