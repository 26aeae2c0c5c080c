// All points of the stories that a death of the leader may spoil, and all requests that may be lost.
import test from 'ava';
import { seedList } from '../../sim/support/seed.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { crashAtEach, loseEach } from './crash.ts';
import { eips, keptAddress, podCidrs } from './stories/pods.ts';
import { storm } from './stories/storm.ts';
import { eniGrowth, otherGroups, warmAndBack } from './stories/supply.ts';
import { play } from './story.ts';

const STORIES = { warmAndBack, eniGrowth, otherGroups, keptAddress, eips, podCidrs };

for (const [name, story] of Object.entries(STORIES)) {
  test(`${name}: also when the leader dies at any point`, crashAtEach(story, { every: 2 }));
  test(`${name}: also when any request is lost, late or astray`, loseEach(story, { every: 2 }));
}

test('storms', async (t) => {
  for (const seed of seedList(80))
    await tellingSeed(t, async () => t.deepEqual((await play(storm, { seed })).violations, [], `seed ${seed}`));
});
