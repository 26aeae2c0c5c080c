/**
 * Plays stories: `node test/simulation/main.ts [--story=NAME] [--seed=N] [--runs=COUNT] [--log] [--crash=EVERY | --lose=EVERY] [--program=agent]`. For each
 * it prints the hash of the run, how much time passed in it and how it ended, and what was seen that must not be. `--runs` plays each
 * with so many seeds, one after the other; `--log` prints all that happened; `--crash` kills the leader, or the agent of the first node, at one of so many points of the
 * story, each in a run of its own, and `--lose` loses or delays its requests. Exit code 1 when anything was seen.
 */
import { parseArgs } from 'node:util';
import { SEED } from '../../sim/support/seed.ts';
import { driveCrashes, driveLosses } from './crash.ts';
import { STORIES } from './stories/all.ts';
import { type Program, play, type Story } from './story.ts';

const { values } = parseArgs({
  options: {
    ...{ story: { type: 'string' }, seed: { type: 'string' }, runs: { type: 'string' } },
    ...{ log: { type: 'boolean' }, crash: { type: 'string' }, lose: { type: 'string' } },
    program: { type: 'string' },
  },
});

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function playOnce(name: string, story: Story, seed: number): Promise<void> {
  const keepsLines = values.log === true;
  const { world, hash, violations, end, points } = await play(story, { seed, program, keepsLines });
  for (const line of world.record.lines) print(line);
  const seconds = Math.round(world.time.nowMs / 1_000);
  const about = { seed, hash, lines: world.record.count, points: points.length, seconds };
  print(`${name} ${JSON.stringify(about)}\n  ${end}`);
  for (const { auditor, atMs, text } of violations) print(`  ${auditor} at ${atMs.toFixed(0)} ms: ${text}`);
  if (violations.length > 0) process.exitCode = 1;
}

async function drive(name: string, story: Story): Promise<void> {
  const driver = values.crash === undefined ? driveLosses : driveCrashes;
  const { failures, places, ...driven } = await driver(story, { program, every: Number(values.crash ?? values.lose) });
  print(`${name} ${JSON.stringify({ ...driven, failures: failures.length, places: Object.fromEntries(places) })}`);
  for (const failure of failures) print(`  ${failure}`);
  if (failures.length > 0) process.exitCode = 1;
}

const program: Program = values.program === 'agent' ? 'agent' : 'ipamd';
const first = values.seed === undefined ? SEED : Number(values.seed);
const wanted = Object.entries(STORIES).filter(([name]) => values.story === undefined || values.story === name);
if (wanted.length === 0) {
  process.stderr.write(`no such story: ${values.story}; there are ${Object.keys(STORIES).join(', ')}\n`);
  process.exit(2);
}
for (const [name, story] of wanted) {
  if (values.crash !== undefined || values.lose !== undefined) await drive(name, story);
  else for (let run = 0; run < Number(values.runs ?? 1); run++) await playOnce(name, story, first + run);
}
// Programs that were killed sleep for ever.
process.exit();
