import { setFlagsFromString } from 'node:v8';
import { openKubeClient } from '../kube/open-client.ts';
import { systemClock } from '../runtime/clock.ts';
import { ConfigError } from '../runtime/decode.ts';
import { endProcess } from '../runtime/end-process.ts';
import { openPinoLogger } from '../runtime/pino-logger.ts';
import { release } from '../runtime/release.ts';
import { EX_CONFIG } from '../runtime/settings/read-settings.ts';
import { readSettingsText } from '../runtime/settings/settings-file.ts';
import { createWebhookMetrics, type ProcessUsage } from './metrics.ts';
import type { WebhookConfig } from './options.ts';
import { startWebhook } from './webhook.ts';
import { readWebhookConfig } from './webhook-config.ts';

const STDOUT = 1;
/** Most calls to the API server. The webhook lists twice and then watches, which takes a fraction of this. */
const KUBE_RATE = { qps: 5, burst: 10 } as const;
const MICROSECONDS = 1e6;

async function main(): Promise<void> {
  // A body of 1 MiB may take 30 as a value. Without this flag V8 keeps garbage of many of them: 470 MiB instead of 210
  // in test/foreign-input/webhook-memory.test.ts.
  setFlagsFromString('--optimize-for-size');
  const argv = process.argv.slice(2);
  const outcome = readWebhookConfig({ argv, env: process.env, readFile: readSettingsText });
  if (outcome.kind === 'help') return print(outcome.text);
  if (outcome.kind === 'version') return print(`${release}\n`);
  await run(outcome.config);
}

async function run(config: WebhookConfig): Promise<void> {
  const log = openPinoLogger(config.logLevel, STDOUT);
  const stop = Promise.withResolvers<NodeJS.Signals>();
  const starting = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    stop.resolve(signal);
    starting.abort(new Error(`ended by ${signal} before there was a certificate`));
  };
  process.once('SIGTERM', onSignal);
  process.once('SIGINT', onSignal);
  const clock = systemClock;
  const kube =
    config.staticIpConfigs || config.readinessGates || config.tlsSecret !== '' ? openKube(config, log) : undefined;
  const metrics = createWebhookMetrics({ release, usage: readUsage });
  const webhook = await startWebhook(config, {
    clock,
    log,
    random: Math.random,
    kube,
    release,
    metrics,
    signal: starting.signal,
  });
  log.info('stopping', { signal: await stop.promise });
  await webhook.close();
  kube?.close();
  process.exit(0);
}

function openKube({ kubeconfig, master }: WebhookConfig, log: ReturnType<typeof openPinoLogger>) {
  return openKubeClient({
    ...(kubeconfig === '' ? {} : { kubeconfig }),
    ...(master === '' ? {} : { master }),
    ...KUBE_RATE,
    env: process.env,
    userAgent: `tke-eni-ip-webhook/${release}`,
    clock: systemClock,
    log,
    random: Math.random,
  });
}

function readUsage(): ProcessUsage {
  const { rss, heapUsed } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  return { residentBytes: rss, heapBytes: heapUsed, cpuSeconds: (user + system) / MICROSECONDS };
}

function print(text: string): void {
  process.stdout.write(text);
}

main().catch((error: unknown) => {
  const isExpected = error instanceof ConfigError;
  process.stderr.write(`${isExpected ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  endProcess(process, isExpected ? EX_CONFIG : 1);
});
