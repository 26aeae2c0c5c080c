import test from 'ava';
import { seedList } from '../../sim/support/seed.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { otherRuleMode, vandals } from './stories/agents.ts';
import { LONG_STORIES, STORIES, STORMS } from './stories/all.ts';
import { play } from './story.ts';

const plain = Object.values(STORIES).filter(
  (story) => !STORMS.includes(story) && story.world?.agentFlags === undefined,
);
for (const story of partOf(plain, (one) => !LONG_STORIES.includes(one)))
  test.serial(story.title, async (t) => t.deepEqual((await play(story)).violations, []));

// Of stories with whole agents; the suite long plays all of them.
for (const story of [otherRuleMode, vandals])
  shortTest.serial(story.title, async (t) => t.deepEqual((await play(story)).violations, []));

for (const story of STORMS)
  for (const seed of seedList(1))
    shortTest.serial(`${story.title}, seed ${seed}`, async (t) => {
      await tellingSeed(t, async () => t.deepEqual((await play(story, { seed })).violations, []));
    });
