import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { AGENT, BASE, IPAMD } from './base-scene.ts';
import { KUBERNETES_FOLDER, strings } from './read-manifests.ts';
import { render, renderExample } from './render-example.ts';

const VERSION = String(at(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')), 'version'));
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const run = hasKubectl ? test : test.skip;

function find(objects: readonly JsonObject[], kind: string, name: RegExp): JsonObject | undefined {
  return objects.find((one) => one['kind'] === kind && name.test(String(at(one, 'metadata', 'name'))));
}

run('kubectl kustomize: renders the base, with a ConfigMap of settings for each component', (t) => {
  const objects = render(join(KUBERNETES_FOLDER, 'base'));
  t.is(objects.length, BASE.length + 2);
  for (const [kind, name] of [
    ['DaemonSet', AGENT],
    ['Deployment', IPAMD],
  ] as const) {
    const container = at(find(objects, kind, new RegExp(`^${name}$`)), 'spec', 'template', 'spec', 'containers', 0);
    t.is(at(container, 'image'), `${name}:${VERSION}`);
    const settings = find(objects, 'ConfigMap', new RegExp(`^${name}-settings-`));
    t.is(at(container, 'envFrom', 0, 'configMapRef', 'name'), at(settings, 'metadata', 'name'));
    t.is(at(settings, 'metadata', 'namespace'), 'kube-system');
    t.is(at(settings, 'immutable'), true);
  }
});

run('kubectl kustomize: of conf/kubernetes is what Kubernetes 1.30 takes: least privilege, and the policies', (t) => {
  const names = (objects: readonly JsonObject[]) => objects.map(({ kind, metadata }) => [kind, at(metadata, 'name')]);
  const objects = render(KUBERNETES_FOLDER);
  t.deepEqual(names(objects), names(render(join(KUBERNETES_FOLDER, 'overlays/kubernetes-1.30'))));
  t.truthy(find(objects, 'ValidatingAdmissionPolicy', /^tke-eni-agent-own-node-only$/));
  t.truthy(find(objects, 'ValidatingAdmissionPolicyBinding', /^tke-eni-agent-own-node-only$/));
  t.truthy(find(objects, 'ValidatingAdmissionPolicy', /^tke-eni-only-ipamd-writes-status$/));
  t.truthy(find(objects, 'ValidatingAdmissionPolicyBinding', /^tke-eni-only-ipamd-writes-status$/));
  const container = at(find(objects, 'DaemonSet', /./), 'spec', 'template', 'spec', 'containers', 0);
  t.is(at(container, 'securityContext', 'privileged'), false);
});

run('kubectl kustomize: for Kubernetes 1.27 renders no kind and no field that came after it', (t) => {
  const objects = renderExample([], { version: '1.27' });
  t.is(objects.length, BASE.length + 2);
  t.is(find(objects, 'ValidatingAdmissionPolicy', /./), undefined);
  const pod = at(find(objects, 'DaemonSet', /./), 'spec', 'template', 'spec');
  t.is(at(pod, 'securityContext'), undefined);
  t.is(at(pod, 'containers', 0, 'securityContext', 'privileged'), true);
});

run('kubectl kustomize: renders the example with the three components', (t) => {
  const objects = renderExample([]);
  t.is(objects.length, BASE.length + 6);
  const pod = at(find(objects, 'DaemonSet', /./), 'spec', 'template', 'spec');
  t.is(at(pod, 'containers', 0, 'image'), `registry.example.com/tke-eni/${AGENT}:${VERSION}`);
  t.is(at(pod, 'containers', 0, 'securityContext', 'privileged'), false);
  t.is(at(pod, 'containers', 0, 'securityContext', 'readOnlyRootFilesystem'), true);
  t.is(strings(at(pod, 'containers', 0, 'securityContext', 'capabilities', 'add')).length, 3);
  t.is(at(pod, 'securityContext', 'appArmorProfile', 'type'), 'Unconfined');
  const data = at(find(objects, 'ConfigMap', /^tke-eni-ipamd$/), 'data');
  t.is(at(data, 'TKE_ENI_IPAMD_SUBNET_ID'), 'subnet-a1b2c3d4:subnet-e5f6a7b8');
  const settings = at(find(objects, 'ConfigMap', /^tke-eni-ipamd-settings-/), 'data');
  t.is(at(settings, 'TKE_ENI_CLUSTERID'), 'cls-a1b2c3d4');
  t.is(at(settings, 'TKE_ENI_LOG_LEVEL'), 'info');
  t.is(at(find(objects, 'ConfigMap', /^tke-eni-ipamd-settings-/), 'immutable'), true);
});
