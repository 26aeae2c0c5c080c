// All stories of whole agents, and many points at which an agent may die.
import test from 'ava';
import { crashAtEach } from './crash.ts';
import { comeAndGo, fullNode, onePod, secondEni } from './stories/agents.ts';
import { STORIES } from './stories/all.ts';
import { fullDisk } from './stories/machines.ts';
import { wholeEnis } from './stories/owned.ts';
import { play } from './story.ts';

for (const [name, story] of Object.entries(STORIES)) {
  if (story.world?.agentFlags === undefined) continue;
  test.serial(`${name}: ${story.title}`, async (t) => t.deepEqual((await play(story)).violations, []));
}

// Runs take from half a second to five.
for (const { story, every } of [
  { story: onePod, every: 1 },
  { story: fullNode, every: 2 },
  { story: comeAndGo, every: 7 },
  { story: secondEni, every: 29 },
  { story: fullDisk, every: 60 },
  { story: wholeEnis, every: 40 },
])
  test.serial(`${story.title}: also when the agent dies`, crashAtEach(story, { program: 'agent', every }));
