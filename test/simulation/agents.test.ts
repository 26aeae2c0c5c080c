import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { crashAtEach } from './crash.ts';
import { onePod, otherRuleMode, restarts, vandals } from './stories/agents.ts';
import { play } from './story.ts';

for (const story of [otherRuleMode, vandals])
  test.serial(story.title, async (t) => t.deepEqual((await play(story)).violations, []));

test.serial(
  'a Pod comes and goes also when its agent dies anywhere',
  crashAtEach(onePod, { program: 'agent', every: 2 }),
);

test.serial('with whole agents too one seed is one run, in every process', async (t) => {
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  const there = execFileSync(process.execPath, [main, '--story=restarts', '--seed=7'], { encoding: 'utf8' });
  t.true(there.includes((await play(restarts, { seed: 7 })).hash), there);
});
