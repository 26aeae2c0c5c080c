import { request } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';
import type { KubeClient } from '../../kube/kube-client.ts';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type KeyPair, makeKeyPair } from '../../sim/kube-api/pki.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { readWebhookConfig, type WebhookConfig } from '../../webhook/options.ts';
import { type RunningWebhook, startWebhook } from '../../webhook/webhook.ts';
import { createTempDir, type TempDir } from '../support/temp-dir.ts';

/** A webhook on a free port of 127.0.0.1, with the files of its certificate. */
export type WebhookScene = {
  readonly webhook: RunningWebhook;
  readonly port: number;
  readonly pair: KeyPair;
  readonly folder: TempDir;
  close(): Promise<void>;
};

/** Starts a webhook with a certificate of its own. */
export async function openWebhook(
  settings: Partial<WebhookConfig> = {},
  kube?: KubeClient,
  clock: Clock = systemClock,
): Promise<WebhookScene> {
  const folder = createTempDir('webhook');
  const pair = await makeKeyPair(folder.path, 'webhook');
  const config: WebhookConfig = {
    ...presets(),
    ...{ tlsCertFile: pair.certPath, tlsPrivateKeyFile: pair.keyPath },
    ...{ listenAddress: '127.0.0.1:0', metricsAddress: '127.0.0.1:0', shutdownDelayMs: 0 },
    ...settings,
  };
  const runtime = { clock, log: silentLogger, random: seededRandom(1), kube, release: 'test' };
  const webhook = await startWebhook(config, runtime);
  const close = async () => {
    await webhook.close();
    folder.close();
  };
  return { webhook, port: Number(webhook.address.split(':')[1]), pair, folder, close };
}

function presets(): WebhookConfig {
  const outcome = readWebhookConfig({ argv: [], env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(outcome.kind);
  return outcome.config;
}

/** An answer by HTTPS. */
type Got = { readonly status: number; readonly text: string };

/** How a request differs from a good one. */
type PostOptions = {
  readonly path?: string;
  readonly method?: string;
  readonly type?: string;
  readonly signal?: AbortSignal;
};

/** Posts a body as the API server does, checking the certificate. */
export function post(
  { port, pair }: Pick<WebhookScene, 'port' | 'pair'>,
  body: string,
  options: PostOptions = {},
): Promise<Got> {
  const { path = '/add-pod-eni-ip-limit', method = 'POST', type = 'application/json', signal } = options;
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': type };
    const sent = request(
      { host: '127.0.0.1', port, ca: pair.cert, path, method, headers, agent: false, ...(signal && { signal }) },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
        response.on('error', reject);
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Opens a secure connection to write to by hand. */
export function openRaw({ port, pair }: Pick<WebhookScene, 'port' | 'pair'>): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ca: pair.cert }, () => resolve(socket));
    socket.once('error', reject);
  });
}

/** Makes the review of a Pod that is to be created. */
export function reviewOf(
  object: unknown,
  request: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  const resource = { group: '', version: 'v1', resource: 'pods' };
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'a1b2', resource, operation: 'CREATE', namespace: 'shop', object, ...request },
  };
}
