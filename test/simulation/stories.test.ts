import test from 'ava';
import { seedList } from '../../sim/support/seed.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { STORIES } from './stories/all.ts';
import { storm } from './stories/storm.ts';
import { play } from './story.ts';

for (const story of Object.values(STORIES)) {
  if (story === storm || story.world?.agentFlags !== undefined) continue;
  test(story.title, async (t) => {
    const { violations } = await play(story);
    t.deepEqual(violations, []);
  });
}

for (const seed of seedList(3)) {
  test(`${storm.title}, seed ${seed}`, async (t) => {
    await tellingSeed(t, async () => t.deepEqual((await play(storm, { seed })).violations, []));
  });
}
