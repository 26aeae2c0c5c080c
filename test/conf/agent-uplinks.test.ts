import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import test from 'ava';
import { readAgentConfig } from '../../agent/config/agent-config.ts';
import { NODE_CILIUM_IPAM_LABEL } from '../../crd/names.ts';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { AGENT, listOf, settingsInput } from './base-scene.ts';
import { KUBERNETES_FOLDER, readResources } from './read-manifests.ts';
import { renderExample } from './render-example.ts';

const NAME = 'tke-eni-agent-uplinks';
const [UPLINKS] = readResources(join(KUBERNETES_FOLDER, 'components/agent-uplinks'));
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const run = hasKubectl ? test : test.skip;

const podOf = (daemonSet: unknown) => at(daemonSet, 'spec', 'template', 'spec');

/** What the DaemonSet asks of the label of nodes of Cilium: the operator. */
function operatorsOf(daemonSet: unknown): readonly unknown[] {
  const required = at(podOf(daemonSet), 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution');
  const terms = listOf(at(required, 'nodeSelectorTerms'));
  return terms.map((term) => {
    const of = listOf(term['matchExpressions']).filter(({ key }) => key === NODE_CILIUM_IPAM_LABEL);
    return of.map(({ operator, values }) => [operator, values]);
  });
}

test('agent-uplinks: the agent takes its flags, whatever the settings of the other nodes are', (t) => {
  const settings = {
    NODE_NAME: 'n1',
    TKE_ENI_DEFAULT_NETWORK: 'tke-bridge',
    TKE_ENI_RULE_MODE: 'compact',
    TKE_ENI_EGRESS: 'node',
    TKE_ENI_PLUGIN_DIR: '/opt/tke-eni/bin',
    TKE_ENI_RESERVE_NODE_ADDRESSES: 'true',
  };
  const outcome = readAgentConfig(settingsInput(at(podOf(UPLINKS), 'containers', 0), settings));
  if (outcome.kind !== 'run') return t.fail(outcome.kind);
  t.like(outcome.config, { role: 'uplinks', supplySource: 'cluster', nodeName: 'n1', pluginDir: '', kubeletDir: '' });
});

test('agent-uplinks: selects no Pod of the other DaemonSet, and is one of the agents that are scraped', (t) => {
  t.is(at(UPLINKS, 'metadata', 'name'), NAME);
  t.deepEqual(at(UPLINKS, 'spec', 'selector', 'matchLabels'), { 'app.kubernetes.io/name': 'tke-eni', 'k8s-app': NAME });
  const labels = at(UPLINKS, 'spec', 'template', 'metadata', 'labels') as JsonObject;
  t.like(labels, { 'k8s-app': NAME, 'app.kubernetes.io/component': 'agent' });
  t.is(at(podOf(UPLINKS), 'serviceAccountName'), AGENT);
});

run('agent-uplinks: each node has one agent, by its label', (t) => {
  const daemonSets = renderExample(['agent-uplinks']).filter(({ kind }) => kind === 'DaemonSet');
  const named = new Map(daemonSets.map((one) => [at(one, 'metadata', 'name'), operatorsOf(one)]));
  t.deepEqual(
    named,
    new Map([
      [AGENT, [[['NotIn', ['crd']]]]],
      [NAME, [[['In', ['crd']]]]],
    ]),
  );
  const settings = daemonSets.map((one) => at(podOf(one), 'containers', 0, 'envFrom', 0, 'configMapRef', 'name'));
  t.regex(String(settings[0]), /^tke-eni-agent-settings-/);
  t.is(settings[1], settings[0], 'one ConfigMap of settings');
});

run('agent-cilium-node: the agent serves the CiliumNode of its node, with the settings of docs/cilium.md', (t) => {
  const agent = renderExample(['agent-cilium-node']).find(({ kind }) => kind === 'DaemonSet');
  const settings = { NODE_NAME: 'n1', TKE_ENI_RESERVE_NODE_ADDRESSES: 'true' };
  const outcome = readAgentConfig(settingsInput(at(podOf(agent), 'containers', 0), settings));
  if (outcome.kind !== 'run') return t.fail(outcome.kind);
  t.like(outcome.config, { role: 'full', supplySource: 'cilium-node', reserveNodeAddresses: true });
});
