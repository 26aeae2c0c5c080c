import { isIP } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { authoritiesOf } from '../kube/certificates/certificate-set.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { openConfiguredClient } from '../kube/open-configured-client.ts';
import { checkBodyLimit } from '../runtime/body-budget.ts';
import { invariant } from '../runtime/invariant.ts';
import { silentLogger } from '../runtime/log.ts';
import { type DaemonRuntime, type RunningDaemon, runDaemon, runProgram } from '../runtime/program.ts';
import { readSchedulerConfig, SCHEDULER_PROGRAM, type SchedulerConfig } from './config/options.ts';
import { createSchedulerMetrics } from './observability/metrics.ts';
import { openSchedulerKeeper, serviceNameOf } from './open-certificates.ts';
import { renderKubeSchedulerConfig } from './render-kube-scheduler-config.ts';
import { startScheduler } from './scheduler.ts';

const MIB = 1024 * 1024;
/** kube-scheduler gives up on a binding earlier than this. */
const REQUEST_TIMEOUT_MS = 10_000;

async function start(config: SchedulerConfig, runtime: DaemonRuntime): Promise<RunningDaemon | undefined> {
  checkBodyLimit('--body-limit-mib', config.bodyLimitMib * MIB, process.constrainedMemory());
  const metrics = createSchedulerMetrics(runtime.clock, runtime);
  const kube = openConfiguredClient(SCHEDULER_PROGRAM.name, config, {
    ...runtime,
    env: process.env,
    observer: metrics.kube,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
  });
  if (config.printKubeSchedulerConfig) {
    process.stdout.write(await kubeSchedulerConfig(config, kube, runtime));
    kube.close();
    return undefined;
  }
  const scheduler = await startScheduler(config, { ...runtime, kube, metrics, signal: runtime.starting });
  return {
    ended: scheduler.ended,
    close: async () => {
      await scheduler.close();
      kube.close();
    },
  };
}

async function kubeSchedulerConfig(
  config: SchedulerConfig,
  kube: KubeClient,
  { clock }: DaemonRuntime,
): Promise<string> {
  const set = await openSchedulerKeeper(config, { kube, clock, log: silentLogger }).sync();
  const { client } = set;
  invariant(client !== undefined, 'a certificate of kube-scheduler is asked for', {});
  const host = config.tlsNames.find((name) => isIP(name) !== 0) ?? serviceNameOf(config);
  return renderKubeSchedulerConfig({ host, authorities: authoritiesOf(set), client });
}

async function main(): Promise<void> {
  // The heap grows by three tenths of what lives before it is collected. V8 chooses between 1.1 and 4 times by the speed of its
  // collections: on a busy machine it took twice the memory for the same cluster. The flag is set here because V8 rejects a
  // code cache that was made without it.
  setFlagsFromString('--heap-growing-percent=30');
  await runDaemon(process, readSchedulerConfig, start);
}

runProgram(process, main, () => false);
