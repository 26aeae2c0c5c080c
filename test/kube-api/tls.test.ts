import { spawnSync } from 'node:child_process';
import test from 'ava';
import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { contractClient } from './contract/client.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const run = hasOpenssl ? test : test.skip;

run('startKubeApi: serves by TLS to who knows its authority, and to nobody else', async (t) => {
  const folder = createTempDir('tls');
  const pair = await makeKeyPair(folder.path, 'server');
  const server = await startKubeApi({ tls: pair, authorization: 'rbac' });
  try {
    const token = server.addToken(ADMIN);
    const answer = await contractClient(server.url, token, pair.cert).call('GET', '/api/v1/nodes');
    t.deepEqual([answer.status, answer.body['kind']], [200, 'NodeList']);
    await t.throwsAsync(contractClient(server.url, token).call('GET', '/api/v1/nodes'), { message: /self-signed/ });
    server.revokeToken(token);
    t.is((await contractClient(server.url, token, pair.cert).call('GET', '/api/v1/nodes')).status, 401);
  } finally {
    await server.close();
    folder.close();
  }
});
