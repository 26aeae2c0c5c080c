import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { CLOUD_TURNS, type RunningCcm, startCcm } from '../../../cloud-controller-manager/ccm.ts';
import { readCcmConfig } from '../../../cloud-controller-manager/config/ccm-config.ts';
import { createCcmMetrics } from '../../../cloud-controller-manager/observability/metrics.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import type { ProgramWorld } from '../replica.ts';

/** Id of the cluster, as ipamd has it too. */
export const CLUSTER_ID = 'cls-sim00001';

/** Starts the real cloud controller manager in a life of its own. */
export async function startCcmLife({ life, log, streams, host, flags, kube }: ProgramWorld): Promise<RunningCcm> {
  const { clock, name } = life;
  const metrics = createCcmMetrics(clock, { release: 'simulation' });
  const observer = metrics.cloud;
  const api = life.cloud(createInProcessApi(host));
  const cloud = createTencentCloud({ api, clock, random: streams.of(`${name} cloud`), observer }, CLOUD_TURNS);
  const random = streams.of(name);
  const ports = { clock, log, random, kube: life.kube(kube), cloud, metrics };
  return await startCcm(configOf(flags), { ...ports, release: 'simulation', identity: name });
}

function configOf(flags: readonly string[]) {
  const own = [`--clusterid=${CLUSTER_ID}`, '--region=ap-guangzhou', '--metrics-address='];
  const outcome = readCcmConfig({ argv: [...own, ...flags], env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(`the cloud controller manager would not run: ${JSON.stringify(outcome)}`);
  return outcome.config;
}
