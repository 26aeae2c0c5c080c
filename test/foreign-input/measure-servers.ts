import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { MAX_BODY_BYTES } from '../../runtime/body-budget.ts';
import { type KeyPair, makeKeyPair } from '../../sim/kube-api/pki.ts';
import { Child } from '../../sim/support/child.ts';
import { freePort } from '../support/free-port.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** The machine may have much else to do. */
const START_MS = 120_000;
const PATH = '/add-pod-eni-ip-limit';

/** What a server did with bodies of wrong items. */
type MeasuredServer = {
  /** Most resident memory, in MiB (`VmHWM`). */
  readonly peakMib: number;
  /** HTTP status of each answer, and how often. */
  readonly statuses: ReadonlyMap<number, number>;
};

/** A webhook as a process of its own. */
type WebhookProcess = {
  readonly port: number;
  readonly metricsPort: number;
  readonly pair: KeyPair;
  /** Most resident memory so far, in MiB. @throws Error when it has ended */
  peakMib(): number;
  close(): Promise<void>;
};

/** Starts the webhook as a process. */
export async function startWebhookProcess(): Promise<WebhookProcess> {
  const folder = createTempDir('webhook-memory');
  const pair = await makeKeyPair(folder.path, 'webhook');
  const settings = {
    'listen-address': `127.0.0.1:${await freePort()}`,
    'metrics-address': `127.0.0.1:${await freePort()}`,
    'static-ip-configs': 'false',
    'tls-cert-file': pair.certPath,
    'tls-private-key-file': pair.keyPath,
  };
  const flags = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
  const child = new Child([process.execPath, join(ROOT, 'webhook/main.ts'), ...flags]);
  const close = async (): Promise<void> => {
    await child.stop();
    folder.close();
  };
  try {
    const port = await waitUntil(() => /"address":"127\.0\.0\.1:(\d+)"/.exec(child.stdout)?.[1], {
      what: 'the webhook listens',
      timeoutMs: START_MS,
      everyMs: 50,
      explain: () => child.stderr,
    });
    const peak = (): number => {
      if (!child.isRunning) throw new Error(`the webhook ended: ${child.stderr}`);
      return peakMib(child.pid);
    };
    const metricsPort = Number(settings['metrics-address'].split(':')[1]);
    await waitUntil(() => accepts(metricsPort), { what: 'the port of metrics', timeoutMs: START_MS, everyMs: 50 });
    return { port: Number(port), metricsPort, pair, peakMib: peak, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Starts the webhook as a process, posts each body `rounds` times, four at once, and ends it. */
export async function measureWebhook(bodies: readonly string[], rounds: number): Promise<MeasuredServer> {
  const webhook = await startWebhookProcess();
  try {
    const statuses = new Map<number, number>();
    for (let round = 0; round < rounds; round++) {
      for (const body of bodies) {
        const answers = await Promise.all(Array.from({ length: 4 }, () => post(webhook.port, webhook.pair, body)));
        for (const status of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }
    return { peakMib: webhook.peakMib(), statuses };
  } finally {
    await webhook.close();
  }
}

/** Bodies that are as large as allowed, each costly in its own way: lists of numbers, of objects, and nested ones. */
export function wrongBodies(): readonly string[] {
  const items = (item: string): string =>
    Array(Math.floor((MAX_BODY_BYTES - 1_024) / (item.length + 1)))
      .fill(item)
      .join(',');
  const depth = (MAX_BODY_BYTES - 1_024) / 2;
  return [
    reviewOf(`[${items('1')}]`),
    reviewOf(`[${items('{}')}]`),
    reviewOf(`[${items('{"name":1}')}]`),
    reviewOf('['.repeat(depth) + ']'.repeat(depth)),
    `[${items('{}')}]`,
  ];
}

/** A review of a Pod whose containers are some JSON. */
export function reviewOf(containers: string): string {
  const resource = '{"group":"","version":"v1","resource":"pods"}';
  const object = `{"metadata":{"name":"p"},"spec":{"containers":${containers}}}`;
  const sent = `{"uid":"u","operation":"CREATE","resource":${resource},"namespace":"n","object":${object}}`;
  return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":${sent}}`;
}

/** The status of the answer; 0 when the server closed the connection while the body was sent. */
function post(port: number, pair: KeyPair, body: string): Promise<number> {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const options = { host: '127.0.0.1', port, ca: pair.cert, path: PATH, method: 'POST', headers, agent: false };
    const sent = request(options, (response) => {
      response.resume().once('close', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', () => resolve(0));
    sent.end(body);
  });
}

async function accepts(port: number): Promise<boolean | undefined> {
  const socket = connect(port, '127.0.0.1');
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => undefined,
  );
  socket.destroy();
  return isOpen;
}

/** Most resident memory of a process, in MiB. */
function peakMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) / 1_024;
}
