// All stories of whole agents, many points at which an agent may die, and storms.
import test from 'ava';
import { seedList } from '../../sim/support/seed.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { crashAtEach } from './crash.ts';
import { comeAndGo, fullNode, nodesInStorm, onePod, secondEni } from './stories/agents.ts';
import { STORIES } from './stories/all.ts';
import { play } from './story.ts';

for (const [name, story] of Object.entries(STORIES)) {
  if (story.world?.agentFlags === undefined || story === nodesInStorm) continue;
  test(`${name}: ${story.title}`, async (t) => t.deepEqual((await play(story)).violations, []));
}

// A run of the last one takes ten times as long as one of the first.
for (const { story, every } of [
  { story: onePod, every: 1 },
  { story: fullNode, every: 2 },
  { story: comeAndGo, every: 7 },
  { story: secondEni, every: 29 },
])
  test.serial(`${story.title}: also when the agent dies`, crashAtEach(story, { program: 'agent', every }));

test.serial('nodes in storms', async (t) => {
  t.timeout(1_800_000);
  for (const seed of seedList(40))
    await tellingSeed(t, async () => t.deepEqual((await play(nodesInStorm, { seed })).violations, [], `seed ${seed}`));
});
