/**
 * Plays stories: `node test/simulation/main.ts [--story=NAME] [--seed=N] [--log]`. Prints one line for each story: its hash, how much
 * time passed in it, and what was seen that must not be. Exit code 1 when anything was.
 */
import { parseArgs } from 'node:util';
import { SEED } from '../../sim/support/seed.ts';
import { driveCrashes, driveLosses } from './crash.ts';
import { STORIES } from './stories/all.ts';
import { play } from './story.ts';

const { values } = parseArgs({
  options: {
    ...{ story: { type: 'string' }, seed: { type: 'string' }, log: { type: 'boolean', default: false } },
    ...{ crash: { type: 'string' }, lose: { type: 'string' } },
  },
});
const seed = values.seed === undefined ? SEED : Number(values.seed);
const wanted = Object.entries(STORIES).filter(([name]) => values.story === undefined || values.story === name);
if (wanted.length === 0) {
  process.stderr.write(`no such story: ${values.story}; there are ${Object.keys(STORIES).join(', ')}\n`);
  process.exit(2);
}
for (const [name, story] of wanted) {
  const before = process.cpuUsage();
  if (values.crash !== undefined || values.lose !== undefined) {
    const driver = values.crash === undefined ? driveLosses : driveCrashes;
    const { failures, ...driven } = await driver(story, { every: Number(values.crash ?? values.lose) });
    const { user, system } = process.cpuUsage(before);
    const places = Object.fromEntries(driven.places);
    process.stdout.write(
      `${name} ${JSON.stringify({ ...driven, places, failures: failures.length, cpuS: (user + system) / 1e6 })}\n`,
    );
    for (const failure of failures) process.stdout.write(`  ${failure}\n`);
    continue;
  }
  const { world, hash, violations, end, points } = await play(story, { seed, keepsLines: values.log });
  const { user, system } = process.cpuUsage(before);
  if (values.log) process.stdout.write(`${world.record.lines.join('\n')}\n`);
  const about = {
    seed,
    hash,
    lines: world.record.count,
    points: points.length,
    seconds: Math.round(world.time.nowMs / 1_000),
  };
  process.stdout.write(`${name} ${JSON.stringify({ ...about, cpuS: (user + system) / 1e6 })}\n  ${end}\n`);
  for (const { auditor, atMs, text } of violations) process.stdout.write(`  ${auditor} at ${atMs}: ${text}\n`);
  if (violations.length > 0) process.exitCode = 1;
}
