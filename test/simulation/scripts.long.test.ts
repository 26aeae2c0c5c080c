// Eighty scripts: of some, the agents are stand-ins, as their seeds have it.
import test from 'ava';
import { seedList } from '../../sim/support/seed.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { drawScript } from './script/draw-script.ts';
import { playScript } from './script/play-script.ts';

test.serial('all comes to rest whatever is drawn, eighty times', async (t) => {
  t.timeout(1_800_000);
  await tellingSeed(t, async () => {
    for (const seed of seedList(80)) {
      const { violations } = await playScript(drawScript(seed));
      t.deepEqual(violations, [], `node test/simulation/main.ts --seed=${seed} --shrink`);
    }
  });
});
