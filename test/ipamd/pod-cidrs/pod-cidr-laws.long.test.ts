import test from 'ava';
import { seedList } from '../../../sim/support/seed.ts';
import { tellingSeed } from '../../support/with-seed.ts';
import { CidrScene } from './cidr-scene.ts';
import { liveThroughCidrs } from './cidr-world.ts';

const SMALL = { clusterCidrs: ['10.4.0.0/20'], serviceCidr: '10.4.12.0/22', nodes: 14, steps: 400 };

for (const seed of seedList(4)) {
  for (const hasRoutes of [true, false]) {
    test.serial(`podCIDRs: laws for long, ${hasRoutes ? 'with routes' : 'with a hold'}, seed ${seed}`, async (t) => {
      t.timeout(600_000);
      await tellingSeed(t, async () => {
        t.deepEqual(await liveThroughCidrs({ ...SMALL, seed, hasRoutes, isRough: true }), []);
      });
    });
  }
}

test('podCIDRs: 5,000 Nodes at once have blocks of their own, with leaders that change meanwhile', async (t) => {
  t.timeout(600_000);
  const scene = new CidrScene({
    clusterCidrs: ['10.0.0.0/11'],
    serviceCidr: '10.31.0.0/16',
    maskSize: 24,
    isLight: true,
  });
  let leader = scene.lead();
  await scene.clock.advance(1_000);
  const names = Array.from({ length: 5_000 }, (_, at) => `n${at}`);
  const joining = Promise.all(names.map((name) => scene.createNode(name)));
  for (let change = 0; change < 4; change++) {
    await scene.clock.advance(2_000);
    leader.stop();
    leader = scene.lead();
  }
  await scene.clock.run(joining);
  let seconds = 0;
  while ([...scene.cidrs().values()].includes('') && seconds < 600) {
    await scene.clock.advance(1_000);
    seconds += 1;
  }
  const given = [...scene.cidrs().values()];
  t.log(`${given.length} Nodes after ${seconds} s of the virtual clock`);
  t.is(new Set(given).size, 5_000);
  t.false(given.includes(''));
  t.false(given.some((cidr) => cidr.startsWith('10.31.')));
  await scene.clock.advance(10_000);
  t.is(scene.counts?.used, 5_000);
  t.true((scene.record()['taken'] ?? '').length < 10_000);
});
