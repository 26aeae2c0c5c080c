import { writeFileSync } from 'node:fs';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { KubeRequestReport } from '../../kube/kube-observer.ts';
import { type OpenKubeClient, openKubeClient } from '../../kube/open-client.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type Kubeconfig, renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { type KubeApi, type KubeApiOptions, startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { createTempDir } from '../support/temp-dir.ts';

/** An API server in this process, and a client of it over HTTP. */
export type KubeScene = {
  readonly api: KubeApi;
  readonly client: OpenKubeClient;
  /** What the client sent, in order. */
  readonly requests: readonly KubeRequestReport[];
};

/** How the client is to be; the API server's options beside. */
export type SceneOptions = {
  readonly api?: KubeApiOptions;
  readonly qps?: number;
  readonly burst?: number;
  readonly requestTimeoutMs?: number;
  readonly watchIdleMs?: number;
};

/** Runs a test with an API server and a client of it, and closes both. */
export async function withKubeScene(options: SceneOptions, run: (scene: KubeScene) => Promise<void>): Promise<void> {
  const api = await startKubeApi(options.api);
  const requests: KubeRequestReport[] = [];
  const { client, close } = openTestClient({ url: api.url, token: 'any' }, options, requests);
  try {
    await run({ api, client, requests });
  } finally {
    close();
    await api.close();
  }
}

/** Opens a client by a kubeconfig of its own; `close` removes both. */
export function openTestClient(
  config: Kubeconfig,
  options: Omit<SceneOptions, 'api'> = {},
  requests: KubeRequestReport[] = [],
): { readonly client: OpenKubeClient; readonly close: () => void } {
  const folder = createTempDir('kube');
  const kubeconfig = folder.join('config');
  writeFileSync(kubeconfig, renderKubeconfig(config));
  const client = openKubeClient({
    kubeconfig,
    env: {},
    qps: options.qps ?? 1000,
    burst: options.burst ?? 1000,
    userAgent: 'tke-eni-test',
    clock: systemClock,
    log: silentLogger,
    observer: { onRequest: (request) => requests.push(request) },
    ...(options.requestTimeoutMs === undefined ? {} : { requestTimeoutMs: options.requestTimeoutMs }),
    ...(options.watchIdleMs === undefined ? {} : { watchIdleMs: options.watchIdleMs }),
  });
  const close = () => {
    client.close();
    folder.close();
  };
  return { client, close };
}

/** Makes a ConfigMap in a namespace. */
export function configMap(name: string, text = '', namespace = 'default'): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { text } };
}

/** Reads what a ConfigMap of `configMap` holds. */
export function textOf(object: KubeObject | undefined): string | undefined {
  const found: unknown = object?.['data'];
  return typeof found === 'object' && found !== null && 'text' in found ? String(found.text) : undefined;
}
