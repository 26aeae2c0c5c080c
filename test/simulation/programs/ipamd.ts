import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { readIpamdConfig } from '../../../ipamd/config/ipamd-config.ts';
import { type RunningIpamd, startIpamd } from '../../../ipamd/ipamd.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import type { ProgramWorld } from '../replica.ts';

/** Starts the real ipamd in a life of its own. */
export async function startIpamdLife(world: ProgramWorld): Promise<RunningIpamd> {
  const { life, streams, log, host, serial } = world;
  const { clock } = life;
  const config = configOf(world.flags);
  const metrics = createIpamdMetrics(clock, { release: 'simulation', minWarmIps: config.ipMinWarmTarget });
  const api = life.cloud(createInProcessApi(host));
  const random = streams.of(`${life.name} cloud`);
  const cloud = createTencentCloud({ api, clock, random, observer: metrics.cloud });
  let made = 0;
  return await startIpamd(config, {
    clock,
    log,
    random: streams.of(life.name),
    ids: {
      next: () => `${serial.toString(16).padStart(4, '0')}${(++made).toString(16).padStart(12, '0')}`,
      now: () => new Date(clock.nowMs()).toISOString(),
    },
    kube: life.kube(world.kube),
    cloud,
    metrics,
    release: 'simulation',
    identity: life.name,
  });
}

function configOf(flags: readonly string[]) {
  const own = ['--clusterid=cls-sim00001', '--region=ap-guangzhou', '--metrics-address='];
  const argv = [...new Map([...own, ...flags].map((flag) => [flag.split('=')[0], flag])).values()];
  const outcome = readIpamdConfig({ argv, env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(`ipamd would not run: ${JSON.stringify(outcome)}`);
  return outcome.config;
}
