import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { KubeClient } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { makeAuthority, signCertificate } from '../../sim/kube-api/pki.ts';
import { Child } from '../../sim/support/child.ts';
import type { RealApi } from '../kube-api/real-api.ts';
import { waitUntil } from '../support/wait-until.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const EXAMPLE = join(ROOT, 'conf', 'kubernetes', 'scheduler', 'kube-scheduler-configuration.yaml');

/** One replica of the scheduler extender, as a process of its own. */
export class Replica {
  readonly address: string;
  readonly #argv: readonly string[];
  readonly #metrics: string;
  #child: Child;
  #log = '';

  readonly name: string;

  /**
   * @param name of its Pod, which has to be in the API server
   * @param ports of its verbs and of its health
   */
  constructor(name: string, kubeconfig: string, ports: readonly [number, number], flags: readonly string[]) {
    this.name = name;
    const [port, metrics] = ports;
    this.address = `127.0.0.1:${port}`;
    this.#metrics = `127.0.0.1:${metrics}`;
    const own = [
      `--kubeconfig=${kubeconfig}`,
      `--listen-address=${this.address}`,
      `--metrics-address=${this.#metrics}`,
    ];
    this.#argv = ['env', `POD_NAME=${name}`, process.execPath, join(ROOT, 'scheduler', 'main.ts'), ...own, ...flags];
    this.#child = new Child(this.#argv);
  }

  /** Reports whether it leads, by its own metric. */
  async isLeading(): Promise<boolean> {
    const answer = await fetch(`http://${this.#metrics}/metrics`).catch(() => undefined);
    return /^tke_eni_ip_scheduler_leading 1$/m.test((await answer?.text()) ?? '');
  }

  /** Reports whether it answers, by its own word. */
  async isReady(): Promise<boolean> {
    const answer = await fetch(`http://${this.#metrics}/readyz`).catch(() => undefined);
    return answer?.status === 200;
  }

  /** What it has logged, in all its lives. */
  get log(): string {
    return this.#log + this.#child.stdout + this.#child.stderr;
  }

  /** Kills it in the middle of whatever it does, and starts it again. */
  async killAndStart(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#child.exited;
    this.#log = this.log;
    this.#child = new Child(this.#argv);
  }

  /** Ends it. */
  async stop(): Promise<void> {
    await this.#child.stop();
  }
}

/** Makes the Pod of a replica, by which others find it. */
export async function makeReplicaPod(admin: KubeClient, { name, address }: Replica): Promise<void> {
  const containerPort = Number(address.split(':')[1]);
  const container = {
    name: 'scheduler',
    image: 'none',
    ports: [{ name: 'https', containerPort, hostPort: containerPort }],
  };
  const spec = { hostNetwork: true, nodeName: 'host', containers: [container] };
  await admin.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'kube-system' }, spec });
  const body = { status: { podIP: '127.0.0.1', podIPs: [{ ip: '127.0.0.1' }] } };
  await admin.patch(PODS, { namespace: 'kube-system', name }, { kind: 'merge', subresource: 'status', body });
}

/** An address that leads to the replicas that are ready in turn, as a Service does. */
type ReadyDoor = { readonly port: number; close(): void };

/** Opens a door to replicas: each connection goes to the next one that is ready when it is made. */
export async function openReadyDoor(replicas: readonly Replica[]): Promise<ReadyDoor> {
  let ready: readonly Replica[] = [];
  let turn = 0;
  const sockets = new Set<Socket>();
  const timer = setInterval(async () => {
    const answers = await Promise.all(replicas.map((one) => one.isReady()));
    ready = replicas.filter((_, index) => answers[index] === true);
  }, 100);
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    const next = ready[turn++ % Math.max(1, ready.length)];
    if (next === undefined) return void socket.destroy();
    const inner = connect(Number(next.address.split(':')[1]), '127.0.0.1');
    inner.on('error', () => socket.destroy());
    inner.once('close', () => socket.destroy());
    socket.once('close', () => inner.destroy());
    socket.pipe(inner).pipe(socket);
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : 0,
    close: () => {
      clearInterval(timer);
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Files by which kube-scheduler and the extender know each other. */
type ExtenderFiles = { readonly caFile: string; readonly certFile: string; readonly keyFile: string };

/** Makes the certificates of both sides in a folder; returns the extender's flags and kube-scheduler's files. */
export async function makeExtenderCertificates(
  folder: string,
): Promise<{ readonly flags: readonly string[]; readonly files: ExtenderFiles }> {
  const authority = await makeAuthority(folder, 'extender');
  const own = await signCertificate(authority, 'tke-eni-ip-scheduler', 'serverAuth');
  const client = await signCertificate(authority, 'system:kube-scheduler', 'clientAuth');
  return {
    flags: [
      `--tls-cert-file=${own.certPath}`,
      `--tls-private-key-file=${own.keyPath}`,
      `--client-ca-file=${authority.certPath}`,
      '--client-allowed-names=system:kube-scheduler',
    ],
    files: { caFile: authority.certPath, certFile: client.certPath, keyFile: client.keyPath },
  };
}

/** Starts a real kube-scheduler with the example configuration, but for where things are. */
export function startKubeScheduler(
  assets: string,
  folder: string,
  api: RealApi,
  extenderPort: number,
  tlsConfig: ExtenderFiles,
): Child {
  const kubeconfig = join(folder, 'scheduler.conf');
  writeFileSync(kubeconfig, renderKubeconfig({ url: api.url, token: api.token, ca: api.ca }));
  // Our own example: an object with one extender.
  const example = parse(readFileSync(EXAMPLE, 'utf8')) as { readonly extenders: readonly Record<string, unknown>[] };
  const config = {
    ...example,
    clientConnection: { kubeconfig },
    leaderElection: { leaderElect: false },
    podInitialBackoffSeconds: 1,
    podMaxBackoffSeconds: 2,
    extenders: [{ ...example.extenders[0], urlPrefix: `https://127.0.0.1:${extenderPort}`, tlsConfig }],
  };
  const path = join(folder, 'scheduler-config.json');
  writeFileSync(path, JSON.stringify(config));
  return new Child([join(assets, 'kube-scheduler'), `--config=${path}`, '--secure-port=0', '--v=2']);
}

/** Finds ports that were free a moment ago. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  return servers.map((server) => {
    const bound = server.address();
    server.close();
    return typeof bound === 'object' && bound !== null ? bound.port : 0;
  });
}

/** Waits until one of the replicas leads, and returns it. */
export async function leaderOf(replicas: readonly Replica[]): Promise<Replica> {
  return await waitUntil(
    async () => {
      const answers = await Promise.all(replicas.map((one) => one.isLeading()));
      return replicas.find((_, index) => answers[index] === true);
    },
    {
      what: 'a replica leads',
      timeoutMs: 60_000,
      everyMs: 100,
      explain: () => replicas.map(({ log }) => log).join('\n'),
    },
  );
}
