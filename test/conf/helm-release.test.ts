import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { stringify } from 'yaml';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';
import { makeChart } from '../../tools/chart.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { startRealApi } from '../kube-api/real-api.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { listOf } from './base-scene.ts';
import { adminOf, createAll, untilEstablished } from './cluster-scene.ts';
import { PUBLISHED_RIGHTS } from './published-rights.ts';
import { KUBERNETES_FOLDER } from './read-manifests.ts';

const HELM = process.env['HELM'] ?? 'helm';
const NAMESPACE = 'kube-system';
const DAEMON_SET = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/tke-eni-agent`;
const CONFIG_MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const NEC = '/apis/networking.tke.cloud.tencent.com/v1/nodeeniconfigs/n1';
const WEBHOOK = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/tke-eni-ip-webhook';
const ROLE = '/apis/rbac.authorization.k8s.io/v1/clusterroles/cloud-controller-manager';
const CCM = 'tke-cloud-controller-manager';
const VALUES: JsonObject = { clusterId: 'cls-a1b2c3d4', subnets: ['subnet-a1b2c3d4'] };

const assets = process.env['KUBE_ASSETS'];
const hasHelm = spawnSync(HELM, ['version', '--short']).status === 0;
const run = assets !== undefined && hasHelm ? test : test.skip;

run(
  'chart: is installed, upgraded, rolled back, refused without certificates, and uninstalled; definitions stay',
  async (t) => {
    const server = await startRealApi(assets ?? '');
    const folder = createTempDir('helm');
    try {
      const admin = adminOf(server);
      const CHART = makeChart(folder.join('dist/helm/tke-eni'));
      const kubeconfig = folder.join('kubeconfig');
      writeFileSync(kubeconfig, renderKubeconfig(server), { mode: 0o600 });
      const helm = (args: readonly string[], values?: JsonObject): string => {
        const { status, stdout, stderr } = spawnSync(
          HELM,
          [...args, '--namespace', NAMESPACE, '--kubeconfig', kubeconfig],
          {
            input: values === undefined ? '' : stringify(values),
            encoding: 'utf8',
            env: { ...process.env, HOME: folder.path },
          },
        );
        if (status !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr}`);
        return stdout;
      };
      /** The name of the agents' settings, by what the DaemonSet says. */
      const named = async (): Promise<string> => {
        const container = at((await admin.call('GET', DAEMON_SET)).body, 'spec', 'template', 'spec', 'containers', 0);
        return String(at(container, 'envFrom', 0, 'configMapRef', 'name'));
      };
      const settings = async (): Promise<unknown> =>
        at((await admin.call('GET', `${CONFIG_MAPS}/${await named()}`)).body, 'data');
      const ruleMode = async (): Promise<unknown> => at(await settings(), 'TKE_ENI_RULE_MODE');
      const kept = async (): Promise<readonly string[]> =>
        listOf((await admin.call('GET', CONFIG_MAPS)).body['items'])
          .map((object) => String(at(object, 'metadata', 'name')))
          .filter((name) => name.startsWith('tke-eni-agent-settings'));
      const generation = async (): Promise<unknown> =>
        at((await admin.call('GET', DAEMON_SET)).body, 'metadata', 'generation');
      const agent = { settings: { 'rule-mode': 'compact' }, ownNodeOnly: true };

      helm(['install', 'tke-eni', CHART, '-f', '-'], VALUES);
      await untilEstablished(admin);
      await createAll(admin, [
        {
          apiVersion: 'networking.tke.cloud.tencent.com/v1',
          kind: 'NodeENIConfig',
          metadata: { name: 'n1' },
          spec: {},
        },
      ]);
      t.is(await ruleMode(), undefined);
      const installed = await generation();

      helm(['upgrade', 'tke-eni', CHART, '-f', '-'], VALUES);
      t.is(await generation(), installed, 'the same values roll nothing');
      helm(['upgrade', 'tke-eni', CHART, '-f', '-'], { ...VALUES, agent });
      t.is(await ruleMode(), 'compact');
      t.not(await generation(), installed);
      const compact = await named();
      t.is((await kept()).length, 2, 'Pods that the rollout has not reached name the old one');
      helm(['rollback', 'tke-eni', '2']);
      t.is(await ruleMode(), undefined);
      helm(['rollback', 'tke-eni', '3']);
      t.is(await named(), compact, 'forward again');
      helm(['rollback', 'tke-eni', '2']);

      // From vpc-cni to hybrid by values alone, and back.
      const network = {
        mode: 'hybrid',
        clusterCidrs: ['192.168.0.0/20'],
        serviceCidr: '192.168.12.0/22',
        maxPodsPerNode: 64,
      };
      const defaultNetwork = async (): Promise<unknown> => at(await settings(), 'TKE_ENI_DEFAULT_NETWORK');
      const plain = await generation();
      helm(['upgrade', 'tke-eni', CHART, '-f', '-'], { ...VALUES, network });
      t.is(await defaultNetwork(), 'tke-bridge');
      t.not(await generation(), plain, 'agents roll');
      t.throws(() => helm(['upgrade', 'tke-eni', CHART, '-f', '-'], { ...VALUES, network: { mode: 'gr' } }), {
        message: /subnets: expected none/,
      });
      helm(['upgrade', 'tke-eni', CHART, '-f', '-'], VALUES);
      t.is(await defaultNetwork(), undefined);

      // Of one component the last three that there were before stay; that of 0.1.0, with a fixed name, is one of them.
      const metadataOfOld = {
        ...{ name: 'tke-eni-agent-settings', namespace: NAMESPACE, labels: { 'app.kubernetes.io/managed-by': 'Helm' } },
        annotations: { 'meta.helm.sh/release-name': 'tke-eni', 'meta.helm.sh/release-namespace': NAMESPACE },
      };
      const old = { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadataOfOld, data: { TKE_ENI_LOG_LEVEL: 'warn' } };
      await createAll(admin, [old]);
      const names: string[] = [];
      for (const [index, mtu] of [1501, 1502, 1503, 1504].entries()) {
        helm(['upgrade', 'tke-eni', CHART, '-f', '-'], { ...VALUES, agent: { settings: { mtu } } });
        names.push(await named());
        t.is((await kept()).includes('tke-eni-agent-settings'), index < 3);
        t.is((await kept()).length, 4);
        // The server dates by whole seconds.
        await sleep(1_000);
      }
      t.deepEqual((await kept()).toSorted(), names.toSorted());

      // The account that a controller makes in every namespace: by it the chart knows that a server answers.
      const metadata = { name: 'default', namespace: NAMESPACE };
      await createAll(admin, [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata }]);
      const { cert, key } = await makeKeyPair(folder.path, 'webhook');
      const webhook = { enabled: true, caBundle: cert };
      const upgrade = (values: JsonObject): string =>
        helm(['upgrade', 'tke-eni', CHART, '-f', '-'], { ...VALUES, ...values });
      t.throws(() => upgrade({ webhook }), { message: /kube-system has no Secret tke-eni-ip-webhook-tls/ });
      const before = (await admin.call('GET', WEBHOOK)).body;
      t.is(at(before, 'webhooks', 0, 'clientConfig', 'caBundle'), undefined, 'the webhook itself writes it');
      const tls = { 'tls.crt': cert, 'tls.key': key };
      await createAll(admin, [
        {
          ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls', stringData: tls },
          metadata: { name: 'tke-eni-ip-webhook-tls', namespace: NAMESPACE },
        },
      ]);
      const notes = upgrade({ webhook, scheduler: { enabled: true, tlsSecret: 'tke-eni-ip-scheduler-tls' } });
      for (const name of ['tke-eni-ip-webhook-tls', 'tke-eni-ip-scheduler-tls'])
        t.regex(notes, new RegExp(`Secret kube-system/${name}: `));
      const answer = (await admin.call('GET', WEBHOOK)).body;
      t.is(at(answer, 'webhooks', 0, 'clientConfig', 'caBundle'), Buffer.from(cert).toString('base64'));

      // The published role's name is that of every cloud controller manager: one from another vendor is not overwritten.
      const [rule] = PUBLISHED_RIGHTS[CCM] ?? [];
      const foreign = { metadata: { name: 'cloud-controller-manager' }, rules: [rule] };
      await createAll(admin, [{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', ...foreign }]);
      const cloudControllerManager = { enabled: true };
      t.throws(() => upgrade({ cloudControllerManager }), { message: /ClusterRole cloud-controller-manager is there/ });
      const apply = ['apply', '--server-side', '-f', join(KUBERNETES_FOLDER, 'cloud-controller-manager/rbac.yaml')];
      const kubectl = spawnSync('kubectl', ['--kubeconfig', kubeconfig, ...apply], { encoding: 'utf8' });
      t.regex(kubectl.stderr, /conflict[\s\S]*\.rules/);
      t.deepEqual((await admin.call('GET', ROLE)).body['rules'], foreign.rules);
      await admin.call('DELETE', ROLE);
      await admin.call(
        'DELETE',
        `${ROLE.replace('clusterroles', 'clusterrolebindings').replace('cloud', 'tke-cloud')}`,
      );
      await admin.call('DELETE', `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${CCM}`);
      for (const _ of ['first', 'again']) upgrade({ cloudControllerManager });
      t.is(listOf((await admin.call('GET', ROLE)).body['rules']).length, 7);

      helm(['uninstall', 'tke-eni']);
      t.deepEqual(await kept(), []);
      t.is((await admin.call('GET', DAEMON_SET)).status, 404);
      t.is((await admin.call('GET', NEC)).status, 200);
    } finally {
      await server.close();
      folder.close();
    }
  },
);
