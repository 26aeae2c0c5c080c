// All stories of whole agents, every second point of what their lives do, and storms.
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

for (const [name, story] of Object.entries({ onePod, fullNode, comeAndGo, secondEni }))
  test(`${name}: also when the agent dies at any point`, crashAtEach(story, { program: 'agent', every: 2 }));

test('nodes in storms', async (t) => {
  for (const seed of seedList(40))
    await tellingSeed(t, async () => t.deepEqual((await play(nodesInStorm, { seed })).violations, [], `seed ${seed}`));
});
