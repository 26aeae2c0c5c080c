import { setFlagsFromString } from 'node:v8';
import { connectCloud } from '../cloud/tencent/open-cloud.ts';
import { RegionError } from '../cloud/tencent/region-error.ts';
import { openConfiguredClient } from '../kube/open-configured-client.ts';
import { type DaemonRuntime, type RunningDaemon, runDaemon, runProgram } from '../runtime/program.ts';
import { CLOUD_TURNS, startCcm } from './ccm.ts';
import { readCcmConfig } from './config/ccm-config.ts';
import { CCM_PROGRAM, type CcmConfig } from './config/options.ts';
import { createCcmMetrics } from './observability/metrics.ts';

const { name: NAME } = CCM_PROGRAM;

async function main(): Promise<void> {
  // As ipamd: less memory for more CPU time, set here because the code cache of the executable is made without it.
  setFlagsFromString('--optimize-for-size');
  await runDaemon(process, readCcmConfig, start);
}

async function start(config: CcmConfig, runtime: DaemonRuntime): Promise<RunningDaemon> {
  const { env } = process;
  const metrics = createCcmMetrics(runtime.clock, runtime);
  const kube = openConfiguredClient(NAME, config, { ...runtime, env, observer: metrics.kube });
  const cloud = await connectCloud(config, {
    ...{ ...runtime, env, observer: metrics.cloud, sessionName: NAME },
    ...CLOUD_TURNS,
  });
  const ccm = await startCcm(config, { ...runtime, kube, cloud, metrics });
  return {
    ended: ccm.ended,
    close: async () => {
      await ccm.close();
      kube.close();
    },
  };
}

runProgram(process, main, (error) => error instanceof RegionError);
