import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { contractClient } from './contract/client.ts';

const MAIN = fileURLToPath(new URL('../../sim/kube-api/main.ts', import.meta.url));
const CRD = fileURLToPath(new URL('../../conf/crd/nodeeniconfigs.yaml', import.meta.url));
const EXAMPLE = fileURLToPath(new URL('../../conf/node.example.yaml', import.meta.url));

test('main: serves what it loaded, says where, writes a kubeconfig, obeys its switches, stops when told', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kube-api-'));
  const kubeconfig = join(folder, 'kubeconfig');
  const args = [MAIN, '--kubeconfig', kubeconfig, '--authorization', 'rbac', '--load', CRD, '--load', EXAMPLE];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    const { url, token } = JSON.parse(String(line)) as { url: string; token: string };
    const client = contractClient(url, token);
    const necs = '/apis/networking.tke.cloud.tencent.com/v1/nodeeniconfigs';
    t.is((await client.call('GET', `${necs}/10.0.0.10`)).status, 200);
    t.is((await client.call('GET', necs, undefined, { token: 'other' })).status, 401);
    const { clusters, users } = JSON.parse(readFileSync(kubeconfig, 'utf8'));
    t.is(clusters[0].cluster.server, url);
    t.is(users[0].user.token, token);
    await client.call('POST', '/_test/fault', { verbs: ['get'], action: { kind: 'status', code: 500 }, times: 1 });
    t.is((await client.call('GET', `${necs}/10.0.0.10`)).status, 500);
    await client.call('POST', '/_test/snapshot', { name: 'before' });
    await client.call('DELETE', `${necs}/10.0.0.10`);
    await client.call('POST', '/_test/restore', { name: 'before' });
    await t.notThrowsAsync(async () => {
      while ((await client.call('GET', `${necs}/10.0.0.10`).catch(() => undefined))?.status !== 200);
    });
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    t.deepEqual(await exited, [0, null]);
  } finally {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
