import { copyFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { ConfigError } from '../../runtime/decode.ts';
import { type KeyPair, makeAuthority, makeKeyPair, signCertificate } from '../../sim/kube-api/pki.ts';
import { readWebhookConfig, type WebhookConfig } from '../../webhook/options.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { openWebhook, post, reviewOf } from './webhook-scene.ts';

const REVIEW = JSON.stringify(reviewOf({ metadata: { name: 'a' }, spec: { containers: [{ name: 'a' }] } }));

/** A webhook that knows the authority of the API server, and how to ask it. */
async function open(t: ExecutionContext, settings: Partial<WebhookConfig> = {}) {
  const dir = createTempDir('webhook-clients');
  const authority = await makeAuthority(dir.path, 'cluster');
  const clientCaFile = dir.join('ca.crt');
  copyFileSync(authority.certPath, clientCaFile);
  const scene = await openWebhook({ clientCaFile, ...settings });
  const agents = new Map<KeyPair, Agent>();
  t.teardown(async () => {
    for (const agent of agents.values()) agent.destroy();
    await scene.close();
    dir.close();
  });
  const ask = (client: KeyPair): Promise<{ readonly status: number; readonly text: string }> => {
    const agent = agents.get(client) ?? new Agent({ keepAlive: true, ca: scene.pair.cert, ...pemOf(client) });
    agents.set(client, agent);
    return new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json' };
      const where = { host: '127.0.0.1', port: scene.port, path: '/add-pod-eni-ip-limit', method: 'POST' };
      const sent = request({ ...where, headers, agent }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      sent.once('error', reject);
      sent.end(REVIEW);
    });
  };
  return { scene, authority, ask, dir, clientCaFile };
}

const pemOf = ({ cert, key }: KeyPair) => ({ cert, key });

test('startWebhook: with --client-ca-file, answers the API server and nobody else', async (t) => {
  const { scene, authority, ask, dir } = await open(t);
  t.is((await ask(await signCertificate(authority, 'kube-apiserver', 'clientAuth'))).status, 200);
  await t.throwsAsync(post(scene, REVIEW), undefined, 'no certificate');
  await t.throwsAsync(ask(await makeKeyPair(dir.path, 'kube-apiserver')), undefined, 'of nobody');
  await t.throwsAsync(ask(await signCertificate(authority, 'a-server', 'serverAuth')), undefined, 'of a server');
});

test('startWebhook: with --client-allowed-names, answers only those of the authority', async (t) => {
  const { authority, ask } = await open(t, { clientAllowedNames: ['kube-apiserver'] });
  t.is((await ask(await signCertificate(authority, 'kube-apiserver', 'clientAuth'))).status, 200);
  const { status, text } = await ask(await signCertificate(authority, 'system:node:n1', 'clientAuth'));
  t.is(status, 403);
  t.regex(text, /"system:node:n1".*--client-allowed-names/);
});

test('startWebhook: takes another authority without a restart, and ends connections of the one before', async (t) => {
  const { scene, authority, ask, dir, clientCaFile } = await open(t);
  const before = await signCertificate(authority, 'kube-apiserver', 'clientAuth');
  t.is((await ask(before)).status, 200);
  const next = await makeAuthority(dir.path, 'next');
  copyFileSync(next.certPath, clientCaFile);
  await scene.webhook.checkCertificate();
  await t.throwsAsync(ask(before));
  t.is((await ask(await signCertificate(next, 'kube-apiserver', 'clientAuth'))).status, 200);
});

test('readWebhookConfig: refuses names without authorities', (t) => {
  const argv = ['--client-allowed-names=kube-apiserver'];
  const error = t.throws(() => readWebhookConfig({ argv, env: {}, readFile: () => '' }), { instanceOf: ConfigError });
  t.regex(error?.message ?? '', /--client-ca-file: expected/);
});
