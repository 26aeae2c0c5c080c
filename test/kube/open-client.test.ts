import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import test from 'ava';
import { isKubeError } from '../../kube/kube-error.ts';
import { loadFullKubeConfig } from '../../kube/load-full-kube-config.ts';
import { type KubeClientOptions, openKubeClient } from '../../kube/open-client.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { silentLogger } from '../../runtime/log.ts';
import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { configMap, withKubeScene } from './kube-scene.ts';

const ONE = { namespace: 'default', name: 'one' };
const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

function optionsOf(more: Partial<KubeClientOptions>): KubeClientOptions {
  return { env: {}, qps: 100, burst: 100, userAgent: 'test', clock: systemClock, log: silentLogger, ...more };
}

test('openKubeClient: waits as long as a throttling server asks, and gives up after some times', (t) =>
  withKubeScene({}, async ({ api, client, requests }) => {
    const action = { kind: 'status', code: 429, retryAfterSeconds: 0 } as const;
    api.faults.add({ verbs: ['create'], action, times: 3 });
    await client.create(CONFIG_MAPS, configMap('one'));
    t.deepEqual(
      requests.map((one) => one.outcome),
      ['THROTTLED', 'THROTTLED', 'THROTTLED', 'ok'],
    );
    api.faults.add({ verbs: ['get'], action });
    const error = await t.throwsAsync(client.get(CONFIG_MAPS, ONE));
    t.true(isKubeError(error, 'THROTTLED'));
  }));

test('openKubeClient: says when it is not known whether a write happened, and does not repeat it', (t) =>
  withKubeScene({ requestTimeoutMs: 3000 }, async ({ api, client, requests }) => {
    api.faults.add({ verbs: ['create'], action: { kind: 'drop-after' }, times: 1 });
    t.true(isKubeError(await t.throwsAsync(client.create(CONFIG_MAPS, configMap('one'))), 'UNAVAILABLE'));
    t.is(api.objects('configmaps').length, 1);
    api.faults.add({ verbs: ['update'], action: { kind: 'hang' }, times: 1 });
    t.true(isKubeError(await t.throwsAsync(client.update(CONFIG_MAPS, configMap('one', 'b'))), 'TIMEOUT'));
    api.faults.add({ verbs: ['update'], action: { kind: 'status', code: 503 }, times: 1 });
    t.true(isKubeError(await t.throwsAsync(client.update(CONFIG_MAPS, configMap('one', 'b'))), 'UNAVAILABLE'));
    t.is(requests.length, 3);
    const leave = new AbortController();
    api.faults.add({ verbs: ['get'], action: { kind: 'hang' }, times: 1 });
    const waiting = client.get(CONFIG_MAPS, ONE, leave.signal);
    leave.abort(new Error('enough'));
    await t.throwsAsync(waiting, { message: 'enough' });
  }));

test('openKubeClient: reads again on a new connection when one from the pool was dead', (t) =>
  withKubeScene({}, async ({ api, client }) => {
    await client.create(CONFIG_MAPS, configMap('one'));
    api.faults.add({ verbs: ['get'], action: { kind: 'drop-before' }, times: 1 });
    t.is((await client.get(CONFIG_MAPS, ONE))?.metadata.name, 'one');
  }));

test('openKubeClient: a queue of calls does not hold up watches and urgent calls', (t) =>
  withKubeScene({ qps: 0.1, burst: 1 }, async ({ client }) => {
    await client.create(CONFIG_MAPS, configMap('one'));
    const stop = new AbortController();
    const waiting = Promise.allSettled([1, 2, 3].map(() => client.get(CONFIG_MAPS, ONE, stop.signal)));
    t.is((await client.urgent.get(CONFIG_MAPS, ONE))?.metadata.name, 'one');
    const events = client.watch(CONFIG_MAPS, { namespace: 'default', resourceVersion: '0' }, stop.signal);
    for await (const event of events) {
      t.like(event, { kind: 'added', object: { metadata: { name: 'one' } } });
      break;
    }
    stop.abort(new Error('over'));
    t.deepEqual(
      (await waiting).map((one) => one.status),
      ['rejected', 'rejected', 'rejected'],
    );
  }));

test('openKubeClient: tells apart no server, and an answer that is none', async (t) => {
  const server = createServer((socket) => {
    socket.resume();
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const client = openKubeClient(optionsOf({ master: `http://127.0.0.1:${port}` }));
  t.true(isKubeError(await t.throwsAsync(client.get(CONFIG_MAPS, ONE)), 'BAD_ANSWER'));
  await new Promise<void>((resolve) => server.close(() => resolve()));
  t.true(isKubeError(await t.throwsAsync(client.get(CONFIG_MAPS, ONE)), 'UNAVAILABLE'));
  client.close();
});

(hasOpenssl ? test : test.skip)(
  'openKubeClient: in a cluster, reads the token again when it was rotated',
  async (t) => {
    const folder = createTempDir('kube');
    const pair = await makeKeyPair(folder.path, 'server');
    const api = await startKubeApi({ tls: pair, authorization: 'rbac' });
    const account = folder.join('account');
    mkdirSync(account);
    writeFileSync(folder.join('account', 'ca.crt'), pair.cert);
    const first = api.addToken(ADMIN);
    writeFileSync(folder.join('account', 'token'), `${first}\n`);
    const { hostname, port } = new URL(api.url);
    const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
    const client = openKubeClient(optionsOf({ env, serviceAccountFolder: account }));
    try {
      await client.create(CONFIG_MAPS, configMap('one'));
      api.revokeToken(first);
      t.true(isKubeError(await t.throwsAsync(client.get(CONFIG_MAPS, ONE)), 'UNAUTHORIZED'));
      writeFileSync(folder.join('account', 'token'), api.addToken(ADMIN));
      t.is((await client.get(CONFIG_MAPS, ONE))?.metadata.name, 'one');
      writeFileSync(folder.join('account', 'ca.crt'), (await makeKeyPair(folder.path, 'other')).cert);
      const stranger = openKubeClient(optionsOf({ env, serviceAccountFolder: account }));
      const error = await t.throwsAsync(stranger.get(CONFIG_MAPS, ONE));
      t.regex(error.message, /UNAVAILABLE: .*(self-signed|unable to verify)/);
      stranger.close();
    } finally {
      client.close();
      await api.close();
      folder.close();
    }
  },
);

test('openKubeClient: signs in by an exec plugin, and asks it again when its token is refused', async (t) => {
  const folder = createTempDir('kube');
  const api = await startKubeApi({ authorization: 'rbac' });
  const first = api.addToken(ADMIN);
  const tokenPath = folder.join('token');
  writeFileSync(tokenPath, first);
  const script = `printf '{"kind":"ExecCredential","status":{"token":"%s"}}' "$(cat ${tokenPath})"`;
  const config = JSON.parse(renderKubeconfig({ url: api.url }));
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: '/bin/sh', args: ['-c', script] };
  config.users = [{ name: 'test', user: { exec } }];
  const kubeconfig = folder.join('config');
  writeFileSync(kubeconfig, JSON.stringify(config));
  const client = openKubeClient(optionsOf({ kubeconfig }));
  try {
    await client.create(CONFIG_MAPS, configMap('one'));
    writeFileSync(tokenPath, api.addToken(ADMIN));
    api.revokeToken(first);
    t.is((await client.get(CONFIG_MAPS, ONE))?.metadata.name, 'one');
  } finally {
    client.close();
    await api.close();
    folder.close();
  }
});

test('openKubeClient: signs in with the whole of client-node where a provider needs it', (t) =>
  withKubeScene({}, async ({ api }) => {
    const folder = createTempDir('kube');
    const config = JSON.parse(renderKubeconfig({ url: api.url }));
    const provider = { name: 'gcp', config: { 'access-token': 'any', expiry: '2999-01-01T00:00:00Z' } };
    config.users = [{ name: 'test', user: { 'auth-provider': provider } }];
    const kubeconfig = folder.join('config');
    writeFileSync(kubeconfig, JSON.stringify(config));
    t.throws(() => openKubeClient(optionsOf({ kubeconfig })), {
      instanceOf: ConfigError,
      message: /auth-provider gcp/,
    });
    const client = openKubeClient(optionsOf({ kubeconfig, loadKubeConfig: loadFullKubeConfig }));
    t.is(await client.get(CONFIG_MAPS, ONE), undefined);
    client.close();
    folder.close();
  }));

const refuses = test.macro((t, content: string | undefined, more: Partial<KubeClientOptions>, message: RegExp) => {
  const folder = createTempDir('kube');
  const kubeconfig = folder.join('config');
  if (content !== undefined) writeFileSync(kubeconfig, content);
  const at = content === undefined && more.kubeconfig === undefined ? {} : { kubeconfig };
  t.throws(() => openKubeClient(optionsOf({ ...more, ...at })), { instanceOf: ConfigError, message });
  folder.close();
});

const GOOD = renderKubeconfig({ url: 'https://127.0.0.1:1' });
test(
  'openKubeClient: refuses when nothing says where',
  refuses,
  undefined,
  {},
  /--kubeconfig: .*KUBERNETES_SERVICE_HOST/,
);
test('openKubeClient: refuses a file that is not there', refuses, undefined, { kubeconfig: 'x' }, /config.*ENOENT/);
test('openKubeClient: refuses a file that is no YAML', refuses, '{', {}, /valid YAML/);
test(
  'openKubeClient: refuses a file that is no kubeconfig',
  refuses,
  'a: 1',
  {},
  /current-context: expected the name of one of the contexts; there are none/,
);
test(
  'openKubeClient: refuses an unknown context',
  refuses,
  GOOD,
  { context: 'prod' },
  /current-context: .*there are test, got prod/,
);
test('openKubeClient: refuses a URL that is none', refuses, GOOD, { master: 'host:6443' }, /--master.*a URL/);
