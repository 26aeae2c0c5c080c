import test from 'ava';
import { seedList } from '../../../sim/support/seed.ts';
import { tellingSeed } from '../../support/with-seed.ts';
import { liveThroughCidrs } from './cidr-world.ts';

/** Twelve blocks for nodes of sixteen: they are exhausted now and then. */
const SMALL = { clusterCidrs: ['10.4.0.0/20'], serviceCidr: '10.4.12.0/22', nodes: 14, steps: 120 };

for (const seed of seedList(4)) {
  for (const hasRoutes of [true, false]) {
    test(`podCIDRs: laws, ${hasRoutes ? 'with routes' : 'with a hold'}, seed ${seed}`, async (t) => {
      await tellingSeed(t, async () => {
        t.deepEqual(await liveThroughCidrs({ ...SMALL, seed, hasRoutes, isRough: true }), []);
      });
    });
  }
}
