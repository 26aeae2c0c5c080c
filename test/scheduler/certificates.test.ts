import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import test from 'ava';
import { parse } from 'yaml';
import { systemClock } from '../../runtime/clock.ts';
import { isRecord } from '../../runtime/decode.ts';
import { silentLogger } from '../../runtime/log.ts';
import { startScheduler } from '../../scheduler/scheduler.ts';
import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { tryRun } from '../../sim/support/run.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { createAll, requestToken, untilEstablished } from '../conf/cluster-scene.ts';
import { KUBERNETES_FOLDER, readResources } from '../conf/read-manifests.ts';
import { openTestClient } from '../kube/kube-scene.ts';
import { contractClient } from '../kube-api/contract/client.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { schedulerConfig } from './scheduler-scene.ts';

const NAME = 'tke-eni-ip-scheduler';
const MAIN = join(import.meta.dirname, '..', '..', 'scheduler', 'main.ts');
const OWN = [`--tls-secret=${NAME}-certificates`, '--tls-names=127.0.0.1'];

type Tls = { readonly ca?: Buffer | undefined; readonly cert?: Buffer | undefined; readonly key?: Buffer | undefined };

function post(address: string, tls: Tls): Promise<number> {
  const [host = '', port = ''] = address.split(':');
  return new Promise((resolve, reject) => {
    const options = { host, port: Number(port), path: '/filter', method: 'POST', agent: false, ...tls };
    const sent = request(options, (response) => resolve(response.resume().statusCode ?? 0));
    sent.once('error', reject);
    sent.end('{}');
  });
}

test('scheduler: the configuration that it prints has what kube-scheduler needs to be answered, by both replicas', async (t) => {
  const server = await startKubeApi({ authorization: 'rbac' });
  const admin = contractClient(server.url, server.addToken(ADMIN), '');
  await createAll(admin, readResources(join(KUBERNETES_FOLDER, '../crd')));
  const folders = ['scheduler', 'components/scheduler-certificates'];
  await createAll(
    admin,
    folders.flatMap((path) => readResources(join(KUBERNETES_FOLDER, path))),
  );
  await untilEstablished(admin);
  const access = { url: server.url, token: await requestToken(admin, NAME), ca: '' };
  const { client, close } = openTestClient(access);
  const runtime = { clock: systemClock, log: silentLogger, random: seededRandom(1), kube: client, release: 'test' };
  const config = schedulerConfig(...OWN);
  const replicas = await Promise.all(
    [1, 2].map((n) => startScheduler(config, { ...runtime, identity: `replica-${n}` })),
  );
  const folder = createTempDir('print');
  t.teardown(async () => {
    for (const one of replicas) await one.close();
    close();
    folder.close();
    await server.close();
  });
  writeFileSync(folder.join('config'), renderKubeconfig(access));
  const argv = [
    process.execPath,
    MAIN,
    '--print-kube-scheduler-config',
    `--kubeconfig=${folder.join('config')}`,
    ...OWN,
    // As the settings of its container have it; the arguments, which name the other files, a command in the container has not.
    '--client-ca-file=/etc/tke-eni-ip-scheduler/tls/ca.crt',
  ];
  const { code, stdout, stderr } = await tryRun(argv);
  t.is(code, 0, stderr);
  const printed: unknown = parse(stdout);
  const example: unknown = parse(
    readFileSync(join(KUBERNETES_FOLDER, 'scheduler/kube-scheduler-configuration.yaml'), 'utf8'),
  );
  const filled = { urlPrefix: 'https://127.0.0.1', tlsConfig: at(printed, 'extenders', 0, 'tlsConfig') };
  const extender = at(example, 'extenders', 0);
  if (!isRecord(example) || !isRecord(extender)) return t.fail();
  t.deepEqual(printed, { ...example, extenders: [{ ...extender, ...filled }] });
  const [ca, cert, key] = ['caData', 'certData', 'keyData'].map((name) =>
    Buffer.from(String(at(filled.tlsConfig, name)), 'base64'),
  );
  await waitUntil(() => replicas.some(({ isLeading }) => isLeading), { what: 'one of them leads' });
  for (const { address, isLeading } of replicas) {
    // The body is no request: the leader says so. The other one has no Pod by which it finds the leader.
    t.is(await post(address, { ca, cert, key }), isLeading ? 400 : 503);
    await t.throwsAsync(post(address, { ca }));
    await t.throwsAsync(post(address, { cert, key }), { message: /self-signed|unable to/ });
  }
});
