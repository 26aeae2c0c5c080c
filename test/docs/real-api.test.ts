import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import { run } from '../../sim/support/run.ts';
import { blockOf, shellCommandsOf } from '../cluster/doc-commands.ts';
import { copyRepository, HELM, OVERLAY } from '../cluster/page-user.ts';
import { adminOf } from '../conf/cluster-scene.ts';
import { objectsOf } from '../conf/read-manifests.ts';
import { authorityPatch } from '../conf/render-example.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { startRealApi } from '../kube-api/real-api.ts';
import { createTempDir } from '../support/temp-dir.ts';

// Commands of the pages, as they are printed, against a real kube-apiserver: what it answers to objects and to their fields'
// owners. Nothing runs there; test/cluster/leaving.test.ts installs in a whole cluster.

const ROOT = join(import.meta.dirname, '../..');
const STATIC = readFileSync(join(ROOT, 'docs/static-ip.md'), 'utf8');
const INSTALL = readFileSync(join(ROOT, 'docs/install.md'), 'utf8');
const OPERATIONS = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
const UPGRADE = readFileSync(join(ROOT, 'docs/upgrade.md'), 'utf8');
const APPLY = `kubectl apply --server-side -k ${OVERLAY}`;
const WEBHOOK = 'tke-eni-ip-webhook';
const CONFIGURATION = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${WEBHOOK}`;
const IPAMD_CONFIG = '/api/v1/namespaces/kube-system/configmaps/tke-eni-ipamd';
const AGENT = '/apis/apps/v1/namespaces/kube-system/daemonsets/tke-eni-agent';
const hasHelm = spawnSync(HELM, ['version', '--short']).status === 0;
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

const assets = process.env['KUBE_ASSETS'];

async function openScene(folder: string) {
  const server = await startRealApi(folder);
  const place = createTempDir('pages');
  copyRepository(place.path);
  cpSync(place.join('conf/kubernetes/overlays/example'), place.join(OVERLAY), { recursive: true });
  const kubeconfig = place.join('kubeconfig');
  writeFileSync(kubeconfig, renderKubeconfig(server), { mode: 0o600 });
  const env = childEnv();
  const sh = (script: string): Promise<string> =>
    run(['sh', '-ec', script], {
      cwd: place.path,
      env: { ...env, HOME: place.path, KUBECONFIG: kubeconfig, PATH: `${folder}:${dirname(HELM)}:${env['PATH']}` },
    });
  const secret = async (name: string): Promise<JsonObject> =>
    (await adminOf(server).call('GET', `/api/v1/namespaces/kube-system/secrets/${name}`)).body;
  const close = async (): Promise<void> => {
    await server.close();
    place.close();
  };
  return { admin: adminOf(server), place, sh, secret, close };
}

if (assets === undefined)
  test.skip('docs: a real kube-apiserver takes the commands (set KUBE_ASSETS to a folder with one)', () => {});
else {
  const { admin, place, sh, secret, close } = await openScene(assets);
  test.after.always(close);

  /** Gives the overlay the component of the webhook and further patches. */
  const overlayWith = (...patches: readonly string[]): void => {
    const [example] = objectsOf(
      readFileSync(join(ROOT, 'conf/kubernetes/overlays/example/kustomization.yaml'), 'utf8'),
    );
    const all = [...((example?.['patches'] ?? []) as readonly object[]), ...patches.map((patch) => ({ patch }))];
    const kustomization = { ...example, components: ['../../components/webhook'], patches: all };
    writeFileSync(place.join(OVERLAY, 'kustomization.yaml'), JSON.stringify(kustomization));
  };
  const data = (object: JsonObject, key: string): string =>
    Buffer.from(String(at(object, 'data', key)), 'base64').toString();

  test.serial(
    'docs/static-ip.md: a Secret has the certificate, and the new one after its renewal, in its data alone',
    async (t) => {
      const files = blockOf(STATIC, 'sh', 'The webhook');
      const renewal = shellCommandsOf(STATIC).find(({ lines }) =>
        lines.some((line) => line.includes('tls.crt=new.crt')),
      );
      await sh(files);
      const made = await secret(`${WEBHOOK}-tls`);
      for (const isAppliedBefore of [false, true]) {
        // As by client-side apply: the key is in an annotation then.
        if (isAppliedBefore) await sh(`kubectl -n kube-system get secret ${WEBHOOK}-tls -o yaml | kubectl apply -f -`);
        await sh(`openssl ecparam -name prime256v1 -genkey -noout -out new.key
        openssl req -key new.key -subj "/CN=${WEBHOOK}" -new -out new.csr
        openssl x509 -req -in new.csr -CA ${WEBHOOK}-ca.crt -CAkey ${WEBHOOK}-ca.key -CAcreateserial -days 365 -extfile ${WEBHOOK}.ext -out new.crt`);
        await sh(renewal?.lines.join('\n') ?? 'false');
        const renewed = await secret(`${WEBHOOK}-tls`);
        t.is(data(renewed, 'tls.key'), readFileSync(place.join('new.key'), 'utf8'));
        t.is(data(renewed, 'ca.crt'), data(made, 'ca.crt'));
        t.is(renewed['type'], 'kubernetes.io/tls');
        t.is(at(renewed, 'metadata', 'annotations', LAST_APPLIED), undefined);
      }
    },
  );

  test.serial(
    'docs/upgrade.md: the Secret of the extender gets its authority, and no key in an annotation',
    async (t) => {
      const name = 'tke-eni-ip-scheduler';
      await sh(blockOf(STATIC, 'sh', 'The webhook').replace(`NAME=${WEBHOOK}`, `NAME=${name}`));
      const [, block = 'false'] =
        /```sh\n( +kubectl -n kube-system create secret generic tke-eni-ip-scheduler-tls[\s\S]*?)```/.exec(UPGRADE) ??
        [];
      await sh(block);
      const changed = await secret(`${name}-tls`);
      t.is(data(changed, 'ca.crt'), readFileSync(place.join(`${name}-ca.crt`), 'utf8'));
      t.is(at(changed, 'metadata', 'annotations', LAST_APPLIED), undefined);
    },
  );

  test.serial(
    'docs/static-ip.md: the webhook is not installed without an authority, and every Pod is created',
    async (t) => {
      overlayWith();
      await t.throwsAsync(sh(APPLY), {
        message: /MutatingWebhookConfiguration[\s\S]*illegal base64 data at input byte 7/,
      });
      t.is((await admin.call('GET', CONFIGURATION)).status, 404);
      await t.notThrowsAsync(sh('kubectl run probe --image=busybox --dry-run=server'));
    },
  );

  test.serial(
    'docs/static-ip.md: the patch gives it the authority; that of cert-manager leaves it to cert-manager',
    async (t) => {
      const authority = readFileSync(place.join(`${WEBHOOK}-ca.crt`), 'utf8');
      overlayWith(authorityPatch(authority));
      await sh(APPLY);
      const caBundle = at((await admin.call('GET', CONFIGURATION)).body, 'webhooks', 0, 'clientConfig', 'caBundle');
      t.is(caBundle, Buffer.from(authority).toString('base64'));

      const blocks = [...STATIC.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block = '']) => block);
      const [kustomization] = objectsOf(blocks.find((block) => block.includes('caBundle: null')) ?? '{}');
      overlayWith(String(at(kustomization, 'patches', 0, 'patch')));
      await sh(APPLY);
      const { body } = await admin.call('GET', CONFIGURATION);
      t.is(at(body, 'webhooks', 0, 'clientConfig', 'caBundle'), undefined);
      t.is(at(body, 'metadata', 'annotations', 'cert-manager.io/inject-ca-from'), 'kube-system/CERTIFICATE');
      await sh(`kubectl delete mutatingwebhookconfiguration ${WEBHOOK}`);
    },
  );

  test.serial(
    'docs/operations.md: subnets that are changed in the overlay are applied without a conflict',
    async (t) => {
      const [apply = 'false', takeBack = 'false'] = shellCommandsOf(OPERATIONS).flatMap(({ heading, lines }) =>
        heading === 'Edits in place' ? lines : [],
      );
      t.is(apply, APPLY);
      const subnets = async (): Promise<unknown> =>
        at((await admin.call('GET', IPAMD_CONFIG)).body, 'data', 'TKE_ENI_IPAMD_SUBNET_ID');
      const example = readFileSync(join(ROOT, 'conf/kubernetes/overlays/example/kustomization.yaml'), 'utf8');
      const overlayOf = (ids: string): void =>
        writeFileSync(
          place.join(OVERLAY, 'kustomization.yaml'),
          example.replace('SUBNET_ID: subnet-a1b2c3d4:subnet-e5f6a7b8', `SUBNET_ID: ${ids}`),
        );
      for (const ids of ['subnet-aaaa', 'subnet-aaaa:subnet-bbbb']) {
        overlayOf(ids);
        await sh(apply);
        t.is(await subnets(), ids);
      }
      const patch = JSON.stringify({ data: { TKE_ENI_IPAMD_SUBNET_ID: 'subnet-cccc' } });
      await sh(
        `kubectl -n kube-system patch configmap tke-eni-ipamd --field-manager=kubectl-edit --type=merge -p '${patch}'`,
      );
      overlayOf('subnet-dddd');
      await t.throwsAsync(sh(apply), { message: /conflict with "kubectl-edit"/ });
      t.is(await subnets(), 'subnet-cccc');
      await sh(takeBack);
      t.is(await subnets(), 'subnet-dddd');
      overlayOf('subnet-eeee');
      await sh(apply);
      t.is(await subnets(), 'subnet-eeee');
    },
  );

  test.serial(
    'docs/upgrade.md: a definition that ipamd wrote is taken back by the flag that the page names',
    async (t) => {
      const path =
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodeeniconfigs.networking.tke.cloud.tencent.com';
      const { body } = await admin.call('GET', path);
      const names = { ...(at(body, 'spec', 'names') as JsonObject), shortNames: ['nec', 'other'] };
      const put = { ...body, spec: { ...(body['spec'] as JsonObject), names } };
      t.is((await admin.call('PUT', path, put, { userAgent: 'tke-eni-ipamd/0.1.0' })).status, 200);
      await t.throwsAsync(sh(APPLY), { message: /conflict with "tke-eni-ipamd"/ });
      t.regex(UPGRADE, /`conflict with "tke-eni-ipamd"`: add `--force-conflicts`/);
      await t.notThrowsAsync(sh(APPLY.replace('--server-side', '--server-side --force-conflicts')));
    },
  );

  const withHelm = hasHelm ? test.serial : test.serial.skip;
  withHelm(
    'docs/install.md: Helm takes over what the example overlay installed, and nothing of it is left',
    async (t) => {
      cpSync(join(ROOT, 'conf/kubernetes/overlays/example'), place.join(OVERLAY), { recursive: true });
      await sh(APPLY);
      await sh(`kubectl create -f - <<'EOF'
apiVersion: networking.tke.cloud.tencent.com/v1
kind: NodeENIConfig
metadata: {name: n1}
spec: {}
EOF`);
      writeFileSync(place.join('my-values.yaml'), blockOf(INSTALL, 'yaml', 'From kustomize to Helm'));
      const commands = shellCommandsOf(INSTALL).flatMap(({ heading, lines }) =>
        heading === 'From kustomize to Helm' ? lines : [],
      );
      // Nothing rolls without controllers.
      const outputs = [];
      for (const line of commands) if (!line.includes('rollout status')) outputs.push(await sh(line));
      t.is(outputs.length, 3);
      t.regex(outputs[1] ?? '', /tke-eni-agent-settings-[0-9a-z]{10}" deleted/);
      // The component of the tests above, which these values do not have.
      const lacking = (outputs[2] ?? '').trim().split('\n');
      t.is(lacking.length, 6);
      for (const name of lacking) t.regex(name, /\/tke-eni-ip-webhook$/);
      const left = await sh('kubectl -n kube-system get configmaps -o name');
      t.deepEqual(
        left.split('\n').flatMap((name) => (name.includes('tke-eni') ? [name.replace(/-[0-9a-f]{10}$/, '')] : [])),
        ['agent-settings', 'ipamd', 'ipamd-settings'].map((name) => `configmap/tke-eni-${name}`),
      );
      t.is((await admin.call('GET', '/apis/networking.tke.cloud.tencent.com/v1/nodeeniconfigs/n1')).status, 200);

      const taken = (await admin.call('GET', AGENT)).body;
      t.is(at(taken, 'metadata', 'labels', 'app.kubernetes.io/managed-by'), 'Helm');
      const container = at(taken, 'spec', 'template', 'spec', 'containers', 0);
      const settings = left
        .split('\n')
        .find((name) => name.includes('agent-settings'))
        ?.replace('configmap/', '');
      t.deepEqual(at(container, 'envFrom'), [{ configMapRef: { name: settings } }]);
      await sh('helm upgrade tke-eni dist/helm/tke-eni --namespace kube-system -f my-values.yaml');
      const { body } = await admin.call('GET', AGENT);
      t.is(at(body, 'metadata', 'generation'), at(taken, 'metadata', 'generation'), 'the next upgrade rolls nothing');
    },
  );
}
