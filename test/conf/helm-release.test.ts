import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import test from 'ava';
import { stringify } from 'yaml';
import { at } from '../kube-api/contract/contract-case.ts';
import { renderKubeconfig } from '../kube-api/kubeconfig.ts';
import type { JsonObject } from '../kube-api/object.ts';
import { startRealApi } from '../kube-api/real-api.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { adminOf, createAll, untilEstablished } from './cluster-scene.ts';

const HELM = process.env['HELM'] ?? 'helm';
const CHART = new URL('../../conf/helm/tke-eni', import.meta.url).pathname;
const NAMESPACE = 'kube-system';
const DAEMON_SET = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/tke-eni-agent`;
const SETTINGS = `/api/v1/namespaces/${NAMESPACE}/configmaps/tke-eni-agent-settings`;
const NEC = '/apis/networking.tke.cloud.tencent.com/v1/nodeeniconfigs/n1';
const VALUES: JsonObject = { clusterId: 'cls-a1b2c3d4', subnets: ['subnet-a1b2c3d4'] };

const assets = process.env['KUBE_ASSETS'];
const hasHelm = spawnSync(HELM, ['version', '--short']).status === 0;
const run = assets !== undefined && hasHelm ? test : test.skip;

run('chart: is installed, upgraded, rolled back and uninstalled; definitions and their objects stay', async (t) => {
  const server = await startRealApi(assets ?? '');
  const folder = createTempDir('helm');
  try {
    const admin = adminOf(server);
    const kubeconfig = folder.join('kubeconfig');
    writeFileSync(kubeconfig, renderKubeconfig(server), { mode: 0o600 });
    const helm = (args: readonly string[], values?: JsonObject): void => {
      const { status, stderr } = spawnSync(HELM, [...args, '--namespace', NAMESPACE, '--kubeconfig', kubeconfig], {
        input: values === undefined ? '' : stringify(values),
        encoding: 'utf8',
        env: { ...process.env, HOME: folder.path },
      });
      if (status !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr}`);
    };
    const ruleMode = async (): Promise<unknown> =>
      at((await admin.call('GET', SETTINGS)).body, 'data', 'TKE_ENI_RULE_MODE');
    const generation = async (): Promise<unknown> =>
      at((await admin.call('GET', DAEMON_SET)).body, 'metadata', 'generation');
    const agent = { settings: { 'rule-mode': 'compact' }, ownNodeOnly: true };

    helm(['install', 'tke-eni', CHART, '-f', '-'], VALUES);
    await untilEstablished(admin);
    await createAll(admin, [
      { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig', metadata: { name: 'n1' }, spec: {} },
    ]);
    t.is(await ruleMode(), undefined);
    const installed = await generation();

    helm(['upgrade', 'tke-eni', CHART, '-f', '-'], VALUES);
    t.is(await generation(), installed, 'the same values roll nothing');
    helm(['upgrade', 'tke-eni', CHART, '-f', '-'], { ...VALUES, agent });
    t.is(await ruleMode(), 'compact');
    t.not(await generation(), installed);
    helm(['rollback', 'tke-eni', '2']);
    t.is(await ruleMode(), undefined);

    helm(['uninstall', 'tke-eni']);
    t.is((await admin.call('GET', DAEMON_SET)).status, 404);
    t.is((await admin.call('GET', NEC)).status, 200);
  } finally {
    await server.close();
    folder.close();
  }
});
