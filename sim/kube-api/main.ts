/**
 * Runs the in-memory API server as a program until it is told to stop.
 *
 *   node sim/kube-api/main.ts --listen 127.0.0.1:8001 --kubeconfig /tmp/kubeconfig [--authorization rbac] [--load crd.yaml]...
 *
 * Prints one line of JSON once it serves: {"url","pid","token"}; the token is an administrator's.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ADMIN } from './auth/tokens.ts';
import { renderKubeconfig } from './kubeconfig.ts';
import { loadManifests } from './load-manifests.ts';
import { startKubeApi } from './start-kube-api.ts';

const { values } = parseArgs({
  options: {
    listen: { type: 'string', default: '127.0.0.1:0' },
    kubeconfig: { type: 'string' },
    authorization: { type: 'string', default: 'all' },
    'tls-cert': { type: 'string' },
    'tls-key': { type: 'string' },
    'tls-ca': { type: 'string' },
    load: { type: 'string', multiple: true, default: [] },
    'bookmark-interval': { type: 'string', default: '60000' },
  },
});
const [host = '127.0.0.1', port = '0'] = values.listen.split(/:(?=\d+$)/);
const [certPath, keyPath] = [values['tls-cert'], values['tls-key']];
const hasTls = certPath !== undefined && keyPath !== undefined;
const server = await startKubeApi({
  host,
  port: Number(port),
  authorization: values.authorization === 'rbac' ? 'rbac' : 'all',
  bookmarkIntervalMs: Number(values['bookmark-interval']),
  ...(hasTls ? { tls: { cert: readFileSync(certPath, 'utf8'), key: readFileSync(keyPath, 'utf8') } } : {}),
});
const token = server.addToken(ADMIN);
const ca = values['tls-ca'] === undefined ? {} : { ca: readFileSync(values['tls-ca'], 'utf8') };
if (values.kubeconfig !== undefined)
  writeFileSync(values.kubeconfig, renderKubeconfig({ url: server.url, token, ...ca }));
for (const path of values.load) await loadManifests(server.url, token, readFileSync(path, 'utf8'));
process.stdout.write(`${JSON.stringify({ url: server.url, pid: process.pid, token })}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void server.close().then(() => process.exit(0)));
