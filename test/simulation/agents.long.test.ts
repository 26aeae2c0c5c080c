// All stories of whole agents, and many points at which an agent may die.
import test from 'ava';
import { crashAtEach } from './crash.ts';
import { comeAndGo, fullNode, onePod, secondEni } from './stories/agents.ts';
import { STORIES } from './stories/all.ts';
import { play } from './story.ts';

for (const [name, story] of Object.entries(STORIES)) {
  if (story.world?.agentFlags === undefined) continue;
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
