/** Processes that die while a load balancer changes that was on record as it is: nothing is taken for settled that is not. */
import test from 'ava';
import { partOf } from '../../support/suite-part.ts';
import type { Crash } from '../process-lives.ts';
import { DEATHS, dieAtEachCall } from './die-at-each-call.ts';
import { ServiceWorld } from './service-world.ts';

const SECOND_MS = 1_000;
/** Two comparisons, so that what is in force is on record. */
const SETTLED_MS = 1_260 * SECOND_MS;
const EXCLUDE = 'node.kubernetes.io/exclude-from-external-load-balancers';
const RECORD = 'tke.cloud.tencent.com/load-balancer-record';

/** A Node is a backend no more, the process dies at that, and the Node is one again before another process begins. */
async function live(crash: Crash): Promise<{ readonly faults: readonly string[]; readonly isCrashDone: boolean }> {
  const world = await ServiceWorld.start();
  const { lives } = world.world;
  const ips = [await world.join('n1'), await world.join('n2')];
  await world.create('web', { spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  await world.advance(SETTLED_MS);
  const faults: string[] = [];
  if (world.annotation('web', RECORD)?.includes('settled') !== true) faults.push('it is not on record');
  lives.crash = { ...crash, at: lives.made[crash.of] + crash.at };
  await world.patchNode('n2', { metadata: { labels: { [EXCLUDE]: '' } } });
  for (let second = 0; second < 100 && !lives.isOver; second++) await world.advance(SECOND_MS);
  const isCrashDone = lives.crash === undefined;
  lives.crash = undefined;
  await world.patchNode('n2', { metadata: { labels: { [EXCLUDE]: null } } });
  await world.replace();
  // Less than the time until the next comparison.
  await world.advance(40 * SECOND_MS);
  const bound = world.listeners()['TCP/80']?.join();
  const wanted = ips.map((ip) => `${ip}:30080 10`).join();
  if (bound !== wanted) faults.push(`${bound} in the place of ${wanted}`);
  await world.stop();
  return { faults, isCrashDone };
}

for (const death of partOf(DEATHS, (one) => one.of === 'change' && one.moment === 'after')) {
  test(`runServiceController: what a process that died ${death.moment} a call to ${death.of} left is not taken for settled`, async (t) => {
    await dieAtEachCall(t, death, live);
  });
}
