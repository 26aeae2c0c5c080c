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
import { startCcm } from './ccm.ts';
import { readCcmConfig } from './config/ccm-config.ts';
import type { CcmConfig } from './config/options.ts';
import { createCcmMetrics, type ProcessUsage } from './observability/metrics.ts';

const STDOUT = 1;
const NAME = 'tke-cloud-controller-manager';
const MICROSECONDS = 1e6;

async function main(): Promise<void> {
  // As ipamd: less memory for more CPU time, set here because the code cache of the executable is made without it.
  setFlagsFromString('--optimize-for-size');
  const argv = process.argv.slice(2);
  const outcome = readCcmConfig({ argv, env: process.env, readFile: readSettingsText });
  if (outcome.kind === 'help') return print(outcome.text);
  if (outcome.kind === 'version') return print(`${release}\n`);
  await run(outcome.config);
}

async function run(config: CcmConfig): Promise<void> {
  const log = openPinoLogger(config.logLevel, STDOUT);
  const stop = Promise.withResolvers<NodeJS.Signals>();
  process.once('SIGTERM', stop.resolve);
  process.once('SIGINT', stop.resolve);
  const clock = systemClock;
  const random = Math.random;
  const metrics = createCcmMetrics(clock, { release, usage: readUsage });
  const kube = openKubeClient({
    ...(config.kubeconfig === '' ? {} : { kubeconfig: config.kubeconfig }),
    ...(config.master === '' ? {} : { master: config.master }),
    env: process.env,
    qps: config.kubeClientQps,
    burst: config.kubeClientBurst,
    userAgent: `${NAME}/${release}`,
    clock,
    log,
    random,
    observer: metrics.kube,
  });
  const region = await findRegion(config, systemHttpGet);
  const cloudDeps = { clock, random, env: process.env, get: systemHttpGet, observer: metrics.cloud, sessionName: NAME };
  const { cloud, credentials } = openCloud(config, region, cloudDeps);
  // Calls without a key are repeated until they time out, and report only that. The reason is logged here once.
  credentials
    .get()
    .catch((error: unknown) =>
      log.error('there is no key to the cloud yet, look at --credentials; will try again', { error }),
    );
  const identity = process.env['POD_NAME'] ?? hostname();
  const ccm = await startCcm(config, { clock, log, random, kube, cloud, release, identity, metrics });
  const signal = await Promise.race([stop.promise, ccm.ended]);
  if (signal !== undefined) log.info('stopping', { signal });
  await ccm.close();
  await ccm.ended;
  kube.close();
  process.exit(0);
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
  const isExpected = error instanceof ConfigError || error instanceof RegionError;
  process.stderr.write(`${isExpected ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  endProcess(process, error instanceof ConfigError ? EX_CONFIG : 1);
});
