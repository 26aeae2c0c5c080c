import test from 'ava';
import { seedList } from '../../sim/support/seed.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { STORIES, STORMS } from './stories/all.ts';
import { play } from './story.ts';

for (const story of Object.values(STORIES)) {
  if (STORMS.includes(story) || story.world?.agentFlags !== undefined) continue;
  test.serial(story.title, async (t) => {
    const { violations } = await play(story);
    t.deepEqual(violations, []);
  });
}

for (const story of STORMS) {
  for (const seed of seedList(1)) {
    test.serial(`${story.title}, seed ${seed}`, async (t) => {
      await tellingSeed(t, async () => t.deepEqual((await play(story, { seed })).violations, []));
    });
  }
}
