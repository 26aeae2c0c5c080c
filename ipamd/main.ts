import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { connectCloud } from '../cloud/tencent/open-cloud.ts';
import { RegionError } from '../cloud/tencent/region-error.ts';
import { openConfiguredClient } from '../kube/open-configured-client.ts';
import { type DaemonRuntime, type RunningDaemon, runDaemon, runProgram } from '../runtime/program.ts';
import { readIpamdConfig } from './config/ipamd-config.ts';
import { IpamdError } from './config/ipamd-error.ts';
import { IPAMD_PROGRAM, type IpamdConfig } from './config/options.ts';
import { startIpamd } from './ipamd.ts';
import { createIpamdMetrics } from './observability/metrics.ts';

const { name: NAME } = IPAMD_PROGRAM;
/** 64 bits: ids made of them are unique. */
const ID_BYTES = 8;

async function main(): Promise<void> {
  // The heap grows by 15 % of what lives before it is collected, and the young generation is 2 MiB (tools/build.ts): an eighth less
  // CPU time than with --optimize-for-size and 1 MiB, for 10 MiB. V8 itself chooses up to 4 times. The flag is set
  // here because V8 rejects a code cache that was made without it.
  setFlagsFromString('--heap-growing-percent=15');
  await runDaemon(process, readIpamdConfig, start);
}

async function start(config: IpamdConfig, runtime: DaemonRuntime): Promise<RunningDaemon> {
  const { clock, usage, release } = runtime;
  const { env } = process;
  const metrics = createIpamdMetrics(clock, { release, usage, minWarmIps: config.ipMinWarmTarget });
  const kube = openConfiguredClient(NAME, config, { ...runtime, env, observer: metrics.kube });
  const cloud = await connectCloud(config, { ...runtime, env, observer: metrics.cloud, sessionName: NAME });
  const ids = { next: () => randomBytes(ID_BYTES).toString('hex'), now: () => new Date(clock.nowMs()).toISOString() };
  const ipamd = await startIpamd(config, { ...runtime, ids, kube, cloud, metrics });
  return {
    ended: ipamd.ended,
    close: async () => {
      await ipamd.close();
      kube.close();
    },
  };
}

runProgram(process, main, (error) => error instanceof IpamdError || error instanceof RegionError);
