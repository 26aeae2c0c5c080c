// A third of the points of the stories that a death of the leader may spoil, and of the requests that may be lost.
import test from 'ava';
import { seedList } from '../../sim/support/seed.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { crashAtEach, loseEach } from './crash.ts';
import { STORMS } from './stories/all.ts';
import { formerBlock, lateBlock } from './stories/blocks.ts';
import { eips } from './stories/eips.ts';
import { keptEni } from './stories/owned.ts';
import { keptAddress, podCidrs } from './stories/pods.ts';
import { lastAddresses } from './stories/scheduling.ts';
import { eniGrowth, otherGroups, warmAndBack } from './stories/supply.ts';
import { play } from './story.ts';

const SOME = { warmAndBack, eniGrowth, otherGroups, keptAddress, eips, podCidrs, formerBlock, lateBlock };

for (const [name, story] of Object.entries(SOME)) {
  test.serial(`${name}: also when the leader dies at any point`, crashAtEach(story, { every: 3 }));
  test.serial(`${name}: also when any request is lost, late or astray`, loseEach(story, { every: 3 }));
}

test.serial('an ENI that is kept moves also when the leader dies anywhere', crashAtEach(keptEni, { every: 31 }));

const program = 'extender';
test.serial(
  'no address is given twice, wherever the leader of the extender dies',
  crashAtEach(lastAddresses, { program }),
);
test.serial('nor when any of its requests is lost, late or astray', loseEach(lastAddresses, { program }));

for (const story of STORMS)
  test.serial(`${story.title}, twenty times`, async (t) => {
    t.timeout(1_800_000);
    for (const seed of seedList(20))
      await tellingSeed(t, async () => t.deepEqual((await play(story, { seed })).violations, [], `seed ${seed}`));
  });
