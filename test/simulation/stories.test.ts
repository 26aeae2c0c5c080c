import test from 'ava';
import { STORIES } from './stories/all.ts';
import { play } from './story.ts';

for (const story of Object.values(STORIES)) {
  test(story.title, async (t) => {
    const { violations } = await play(story);
    t.deepEqual(violations, []);
  });
}
