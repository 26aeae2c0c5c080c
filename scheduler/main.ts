import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { authoritiesOf } from '../kube/certificates/certificate-set.ts';
import { openKubeClient } from '../kube/open-client.ts';
import { checkBodyLimit } from '../runtime/body-budget.ts';
import { systemClock } from '../runtime/clock.ts';
import { ConfigError } from '../runtime/decode.ts';
import { endProcess } from '../runtime/end-process.ts';
import { invariant } from '../runtime/invariant.ts';
import { silentLogger } from '../runtime/log.ts';
import { openPinoLogger } from '../runtime/pino-logger.ts';
import { release } from '../runtime/release.ts';
import { EX_CONFIG } from '../runtime/settings/read-settings.ts';
import { readSettingsText } from '../runtime/settings/settings-file.ts';
import type { SchedulerConfig } from './config/options.ts';
import { readSchedulerConfig } from './config/scheduler-config.ts';
import { createSchedulerMetrics, type ProcessUsage } from './observability/metrics.ts';
import { openSchedulerKeeper, serviceNameOf } from './open-certificates.ts';
import { renderKubeSchedulerConfig } from './render-kube-scheduler-config.ts';
import { startScheduler } from './scheduler.ts';

const STDOUT = 1;
const MIB = 1024 * 1024;

async function main(): Promise<void> {
  const argv = process.argv.slice(2);
  const outcome = readSchedulerConfig({ argv, env: process.env, readFile: readSettingsText });
  if (outcome.kind === 'help') return print(outcome.text);
  if (outcome.kind === 'version') return print(`${release}\n`);
  checkBodyLimit('--body-limit-mib', outcome.config.bodyLimitMib * MIB, process.constrainedMemory());
  await run(outcome.config);
}

async function run(config: SchedulerConfig): Promise<void> {
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
  const random = Math.random;
  const metrics = createSchedulerMetrics(clock, { release, usage: readUsage });
  const kube = openKubeClient({
    ...(config.kubeconfig === '' ? {} : { kubeconfig: config.kubeconfig }),
    ...(config.master === '' ? {} : { master: config.master }),
    env: process.env,
    qps: config.kubeClientQps,
    burst: config.kubeClientBurst,
    userAgent: `tke-eni-ip-scheduler/${release}`,
    clock,
    log,
    random,
    observer: metrics.kube,
    // kube-scheduler gives up on a binding earlier than this.
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
  });
  if (config.printKubeSchedulerConfig) {
    const set = await openSchedulerKeeper(config, { kube, clock, log: silentLogger }).sync();
    const { client } = set;
    invariant(client !== undefined, 'a certificate of kube-scheduler is asked for', {});
    const host = config.tlsNames.find((name) => isIP(name) !== 0) ?? serviceNameOf(config);
    print(renderKubeSchedulerConfig({ host, authorities: authoritiesOf(set), client }));
    kube.close();
    return;
  }
  const identity = process.env['POD_NAME'] ?? hostname();
  const scheduler = await startScheduler(config, {
    clock,
    log,
    random,
    kube,
    release,
    identity,
    metrics,
    signal: starting.signal,
  });
  const signal = await Promise.race([stop.promise, scheduler.ended]);
  if (signal !== undefined) log.info('stopping', { signal });
  await scheduler.close();
  await scheduler.ended;
  kube.close();
  process.exit(0);
}

const REQUEST_TIMEOUT_MS = 10_000;
const MICROSECONDS = 1e6;

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
