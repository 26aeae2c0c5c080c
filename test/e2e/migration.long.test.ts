// Numbered packets at a high rate while every stage of a migration is tried, three times there and back.
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { openWorld } from './packets/world.ts';

/** Between stages packets flow for a while, so that each half-way state is tried, not only crossed. */
const STAGE_MS = 150;
const ROUND_TRIPS = 3;

test.serial('planMigration: no packet is lost on the way from one rule mode to the other and back', async (t) => {
  const world = await openWorld({ network: { ruleMode: 'per-pod' } });
  try {
    const n1 = world.node('n1');
    const streams = await Promise.all(
      ([4, 6] as const).map((family) =>
        startTraffic(
          { netns: world.pod(family === 4 ? 'a1' : 'b1').netns, ip: world.pod(family === 4 ? 'a1' : 'b1').ips[family] },
          { netns: world.vpc.outside.netns, ip: world.outside(family) },
          { rate: 2_500, port: 7000 + family },
        ),
      ),
    );
    t.teardown(() => Promise.all(streams.map((stream) => stream.close())).then(() => undefined));
    const rules = async () =>
      (await n1.netns.ip('rule', 'show')).split('\n').filter((line) => line.includes('proto 84')).length;
    const counts: number[] = [];
    for (let trip = 0; trip < ROUND_TRIPS; trip++) {
      for (const ruleMode of ['compact', 'per-pod'] as const) {
        t.is((await n1.migrate(ruleMode, () => sleep(STAGE_MS))).length, 5);
        counts.push(await rules());
      }
    }
    const [compact = 0, perPod = 0] = counts;
    t.true(perPod > compact);
    t.deepEqual(counts, Array.from({ length: ROUND_TRIPS }, () => [compact, perPod]).flat());
    for (const stream of streams) t.deepEqual(describeLoss(await stream.finish()), []);
    t.deepEqual(await world.vpc.droppedPackets(), []);
    // Every packet went by the Pod's own ENI all the time.
    t.deepEqual(await world.waysOf(world.pod('a1').ips[4], world.outside(4)), ['eni-a']);
    t.deepEqual(await world.waysOf(world.pod('b1').ips[6], world.outside(6)), ['eni-b']);
  } finally {
    await world.close();
  }
});
