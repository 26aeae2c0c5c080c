import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { systemHttpGet } from '../cloud/tencent/credentials/fetch-sources.ts';
import { findRegion, openCloud } from '../cloud/tencent/open-cloud.ts';
import { RegionError } from '../cloud/tencent/region-error.ts';
import { openKubeClient } from '../kube/open-client.ts';
import { systemClock } from '../runtime/clock.ts';
import { ConfigError } from '../runtime/decode.ts';
import { endProcess } from '../runtime/end-process.ts';
import { openPinoLogger } from '../runtime/pino-logger.ts';
import { release } from '../runtime/release.ts';
import { EX_CONFIG } from '../runtime/settings/read-settings.ts';
import { readSettingsText } from '../runtime/settings/settings-file.ts';
import { readIpamdConfig } from './config/ipamd-config.ts';
import { IpamdError } from './config/ipamd-error.ts';
import type { IpamdConfig } from './config/options.ts';
import { startIpamd } from './ipamd.ts';
import { createIpamdMetrics, type ProcessUsage } from './observability/metrics.ts';

const STDOUT = 1;

async function main(): Promise<void> {
  // A join of 1,000 nodes takes 150 MiB instead of 230, for more CPU time. The flag is set here because the code cache
  // of the executable is made without it and would not be used with it.
  setFlagsFromString('--optimize-for-size');
  const argv = process.argv.slice(2);
  const outcome = readIpamdConfig({ argv, env: process.env, readFile: readSettingsText });
  if (outcome.kind === 'help') return print(outcome.text);
  if (outcome.kind === 'version') return print(`${release}\n`);
  await run(outcome.config);
}

async function run(config: IpamdConfig): Promise<void> {
  const log = openPinoLogger(config.logLevel, STDOUT);
  const stop = Promise.withResolvers<NodeJS.Signals>();
  process.once('SIGTERM', stop.resolve);
  process.once('SIGINT', stop.resolve);
  const clock = systemClock;
  const random = Math.random;
  const metrics = createIpamdMetrics(clock, { release, usage: readUsage, minWarmIps: config.ipMinWarmTarget });
  const kube = openKubeClient({
    ...(config.kubeconfig === '' ? {} : { kubeconfig: config.kubeconfig }),
    ...(config.master === '' ? {} : { master: config.master }),
    env: process.env,
    qps: config.kubeClientQps,
    burst: config.kubeClientBurst,
    userAgent: `tke-eni-ipamd/${release}`,
    clock,
    log,
    random,
    observer: metrics.kube,
  });
  const region = await findRegion(config, systemHttpGet);
  const { cloud, credentials } = openCloud(config, region, {
    clock,
    random,
    env: process.env,
    get: systemHttpGet,
    observer: metrics.cloud,
    sessionName: 'tke-eni-ipamd',
  });
  // Calls without a key are repeated until they time out, and report only that. The reason is logged here once.
  credentials
    .get()
    .catch((error: unknown) =>
      log.error('there is no key to the cloud yet, look at --credentials; will try again', { error }),
    );
  const ids = { next: () => randomBytes(ID_BYTES).toString('hex'), now: () => new Date(clock.nowMs()).toISOString() };
  const runtime = {
    clock,
    log,
    random,
    ids,
    kube,
    cloud,
    release,
    identity: process.env['POD_NAME'] ?? hostname(),
    metrics,
  };
  const ipamd = await startIpamd(config, runtime);
  const signal = await Promise.race([stop.promise, ipamd.ended]);
  if (signal !== undefined) log.info('stopping', { signal });
  await ipamd.close();
  await ipamd.ended;
  kube.close();
  process.exit(0);
}

/** 64 bits: ids made of them are unique. */
const ID_BYTES = 8;
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
  const isExpected = error instanceof ConfigError || error instanceof IpamdError || error instanceof RegionError;
  process.stderr.write(`${isExpected ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  endProcess(process, error instanceof ConfigError ? EX_CONFIG : 1);
});
