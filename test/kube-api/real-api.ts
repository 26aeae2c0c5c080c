import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';
import { Child } from '../../sim/support/child.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type ContractClient, contractClient } from './contract/client.ts';

/** A real kube-apiserver with an etcd of its own, both on 127.0.0.1 only. */
export type RealApi = {
  readonly url: string;
  readonly token: string;
  readonly ca: string;
  /** Kills the kube-apiserver, starts it again and waits until it is ready; etcd runs on. */
  readonly restart: () => Promise<void>;
  /** Process ids of now. */
  readonly pids: () => { readonly server: number; readonly etcd: number };
  readonly close: () => Promise<void>;
};

const TOKEN = 'administrator';

/**
 * Starts etcd (from `assets` or the path) and the kube-apiserver in `assets`. Owns both until `close`.
 * @throws Error with the last lines of the server's log when it does not become ready
 */
export async function startRealApi(assets: string): Promise<RealApi> {
  const folder = createTempDir('kube');
  const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()];
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const pair = await makeKeyPair(folder.path, 'apiserver');
  const tokens = folder.join('tokens.csv');
  writeFileSync(tokens, `${TOKEN},kubernetes-admin,1,"system:masters"\n`);
  const etcd = new Child([
    existsSync(join(assets, 'etcd')) ? join(assets, 'etcd') : 'etcd',
    `--data-dir=${folder.join('etcd')}`,
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
    `--initial-advertise-peer-urls=http://127.0.0.1:${peerPort}`,
    `--initial-cluster=default=http://127.0.0.1:${peerPort}`,
  ]);
  const argv = [
    join(assets, 'kube-apiserver'),
    `--etcd-servers=${etcdUrl}`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    // Nothing is told to anyone under this address: it is one for documents.
    '--advertise-address=192.0.2.1',
    '--endpoint-reconciler-type=none',
    `--tls-cert-file=${pair.certPath}`,
    `--tls-private-key-file=${pair.keyPath}`,
    `--service-account-key-file=${pair.certPath}`,
    `--service-account-signing-key-file=${pair.keyPath}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--token-auth-file=${tokens}`,
    '--authorization-mode=RBAC',
    // As the servers of clusters with a network agent of any kind.
    '--allow-privileged=true',
    '--service-cluster-ip-range=10.96.0.0/24',
    // Without controllers nobody makes the account that every Pod would have to have.
    '--disable-admission-plugins=ServiceAccount',
  ];
  let server = new Child(argv);
  const close = async () => {
    await server.stop();
    await etcd.stop();
    folder.close();
  };
  const url = `https://127.0.0.1:${port}`;
  const client = contractClient(url, TOKEN, pair.cert);
  const restart = async () => {
    await server.stop('SIGKILL');
    server = new Child(argv);
    await untilReady(client, server);
  };
  const pids = () => ({ server: server.pid, etcd: etcd.pid });
  const api = { url, token: TOKEN, ca: pair.cert, restart, pids, close };
  try {
    await untilReady(client, server);
    // Its memory of changes begins at its start: after a second one, the first revisions are too old to watch from.
    await restart();
  } catch (error) {
    await close();
    throw error;
  }
  return api;
}

async function untilReady(client: ContractClient, server: Child): Promise<void> {
  const isReady = async () => (await client.call('GET', '/readyz').catch(() => undefined))?.status === 200;
  const explain = () => server.stderr.split('\n').slice(-5).join('\n');
  await waitUntil(isReady, { what: 'kube-apiserver', timeoutMs: 60_000, everyMs: 100, explain });
  const hasNamespace = async () => (await client.call('GET', '/api/v1/namespaces/default')).status === 200;
  await waitUntil(hasNamespace, { what: 'namespace default', timeoutMs: 30_000, everyMs: 100 });
}

/** Returns a port of 127.0.0.1 that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
