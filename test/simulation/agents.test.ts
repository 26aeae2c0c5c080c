import test from 'ava';
import { crashAtEach } from './crash.ts';
import { onePod, otherRuleMode, vandals } from './stories/agents.ts';
import { play } from './story.ts';

for (const story of [otherRuleMode, vandals])
  test.serial(story.title, async (t) => t.deepEqual((await play(story)).violations, []));

test.serial(
  'a Pod comes and goes also when its agent dies anywhere',
  crashAtEach(onePod, { program: 'agent', every: 5 }),
);
