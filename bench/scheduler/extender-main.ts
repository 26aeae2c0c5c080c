/** The scheduler extender as a process of its own, with the cluster of the benchmark; prints where it listens once it answers. */
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { startScheduler } from '../../scheduler/scheduler.ts';
import { schedulerConfig } from '../../test/scheduler/scheduler-scene.ts';
import { worldClient } from './world.ts';

const runtime = {
  clock: systemClock,
  log: silentLogger,
  random: Math.random,
  kube: worldClient(systemClock),
  release: 'bench',
};
process.once('SIGTERM', () => process.exit(0));
const start = async () => {
  const scheduler = await startScheduler(schedulerConfig('--leader-elect=false', '--filter-wait=0s'), runtime);
  while (scheduler.readiness() !== undefined) await systemClock.sleep(20);
  console.log(JSON.stringify({ address: scheduler.address, sizes: scheduler.index.sizes }));
};
start().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
