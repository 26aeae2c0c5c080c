import { setFlagsFromString } from 'node:v8';
import { openConfiguredClient } from '../kube/open-configured-client.ts';
import { type DaemonRuntime, type RunningDaemon, runDaemon, runProgram } from '../runtime/program.ts';
import { createWebhookMetrics } from './metrics.ts';
import { readWebhookConfig, WEBHOOK_PROGRAM, type WebhookConfig } from './options.ts';
import { startWebhook } from './webhook.ts';

/** Most calls to the API server. The webhook lists twice and then watches, which takes a fraction of this. */
const KUBE_RATE = { kubeClientQps: 5, kubeClientBurst: 10 } as const;

async function main(): Promise<void> {
  // A body of 1 MiB may take 30 as a value. Without this flag V8 keeps garbage of many of them: 470 MiB instead of 210
  // in test/foreign-input/webhook-memory.test.ts.
  setFlagsFromString('--optimize-for-size');
  await runDaemon(process, readWebhookConfig, start);
}

async function start(config: WebhookConfig, runtime: DaemonRuntime): Promise<RunningDaemon> {
  const usesKube = config.staticIpConfigs || config.readinessGates || config.tlsSecret !== '';
  const kube = usesKube
    ? openConfiguredClient(WEBHOOK_PROGRAM.name, { ...config, ...KUBE_RATE }, { ...runtime, env: process.env })
    : undefined;
  const metrics = createWebhookMetrics(runtime);
  const webhook = await startWebhook(config, { ...runtime, kube, metrics, signal: runtime.starting });
  return {
    close: async () => {
      await webhook.close();
      kube?.close();
    },
  };
}

runProgram(process, main, () => false);
