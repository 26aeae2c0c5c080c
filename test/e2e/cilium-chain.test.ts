import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { pluginDir } from '../support/executables.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Conflist, callChain } from './support/chain.ts';
import { openScenes } from './support/scene.ts';

const scenes = openScenes(test, [
  {
    ruleMode: 'per-pod',
    nodes: [{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 4 }], directEnis: [{ eniId: 'eni-2' }] }],
    // cilium-cni decides: nftables works here.
    agentFlags: { 'plugin-dir': pluginDir(), 'chained-plugins': 'cilium-cni', 'rule-mode': 'auto' },
  },
]);

const CONFLIST = '10-tke-eni.conflist';

/** Stands in for cilium-cni: notes each call with its configuration, and answers with the result of the plugins before it. */
function standIn(calls: string): string {
  return `#!${process.execPath}
const { appendFileSync, readFileSync } = require('node:fs');
const command = process.env.CNI_COMMAND;
const conf = JSON.parse(readFileSync(0, 'utf8'));
if (command === 'VERSION') {
  process.stdout.write(JSON.stringify({ cniVersion: '1.0.0', supportedVersions: ['0.4.0', '1.0.0'] }));
} else {
  appendFileSync(${JSON.stringify(calls)}, JSON.stringify({ command, conf }) + '\\n');
  if (command === 'ADD') process.stdout.write(JSON.stringify(conf.prevResult));
}
`;
}

test('--chained-plugins: the list waits for cilium-cni, ADD, CHECK and DEL pass along it, and a whole ENI is refused', async (t) => {
  const { node } = scenes.get('per-pod');
  const { agent } = node;
  const path = join(agent.cniConfDir, CONFLIST);
  const explain = (): string => agent.logs().slice(-2_000);
  const waits = (): boolean => agent.logs().includes('network configuration waits for chained plugins');
  await waitUntil(waits, { what: 'the agent that waits for cilium-cni', explain });
  t.false(existsSync(path));

  const calls = join(node.dir, 'calls');
  writeFileSync(join(agent.cniBinDir, 'cilium-cni'), standIn(calls), { mode: 0o755 });
  await waitUntil(() => existsSync(path), { what: path, explain });
  const list: Conflist = JSON.parse(readFileSync(path, 'utf8'));
  t.is(list.name, 'generic-veth');
  t.is(list.plugins.at(-1)?.type, 'cilium-cni');

  const pod = await node.newPod();
  const [own, last] = await callChain('ADD', pod, list);
  t.is(own?.exitCode, 0, own?.stdout);
  t.deepEqual(last?.result, own?.result);
  await scenes.verify(t, 'per-pod');
  for (const command of ['CHECK', 'DEL'] as const) {
    for (const answer of await callChain(command, pod, list, { prevResult: last?.result ?? {} })) {
      t.is(answer.exitCode, 0, answer.stdout);
    }
  }
  const lines = readFileSync(calls, 'utf8').trim().split('\n');
  const noted = lines.map((line) => JSON.parse(line));
  t.deepEqual(
    noted.map(({ command, conf }) => [command, conf.name, conf['chaining-mode'], conf.prevResult?.ips?.length]),
    ['ADD', 'CHECK', 'DEL'].map((command) => [command, 'generic-veth', 'generic-veth', 1]),
  );

  const conf = node.conf({ name: 'tke-direct-eni', type: 'tke-direct-eni' });
  const refused = await node.call('ADD', await node.newPod(), { conf, plugin: 'tke-direct-eni' });
  t.is(refused.error?.code, 7, refused.stdout);
  t.regex(refused.error?.msg ?? '', /gets an exclusive ENI .*, and --chained-plugins chains cilium-cni/);
  await scenes.verify(t, 'per-pod');
});
