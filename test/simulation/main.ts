/**
 * Plays stories and scripts: `node test/simulation/main.ts` plays each story once. `--story=NAME` chooses one, `--seed=N` its seed;
 * `--seed=N` alone plays the script that is drawn from that seed, `--script=FILE` one that was written. `--runs=COUNT` plays so many
 * seeds, `--within=MINUTES` new ones for that long; `--agents=whole` or `--agents=stand-in` draws such scripts alone, `--ccm` those with cloud-controller-manager. For each it
 * prints the hash of the run, how much time passed in it, how it ended, and what was seen that must not be. `--log` prints all that
 * happened; `--shrink` makes a script that fails as small as it goes, writes it to `simulation-N.json` and prints it as a story.
 * `--crash=EVERY` kills the leader of a story, or with `--program=agent` the agent of its first node, with `--program=ccm` the leader of
 * cloud-controller-manager, or of the extender with `--program=extender`, at one of so many points, each in a run of its own, and `--lose=EVERY` loses or delays its requests. Exit code 1 when anything was seen.
 */
import { parseArgs } from 'node:util';
import { givenOrNewSeed, SEED } from '../../sim/support/seed.ts';
import { driveCrashes, driveLosses } from './crash.ts';
import type { Script } from './script/deed.ts';
import { drawScript } from './script/draw-script.ts';
import { playScript, shrinkScript } from './script/play-script.ts';
import { readScript, renderStory, writeScript } from './script/script-file.ts';
import { STORIES } from './stories/all.ts';
import { type Played, type Program, play, type Story } from './story.ts';

const { values } = parseArgs({
  options: {
    ...{ story: { type: 'string' }, seed: { type: 'string' }, runs: { type: 'string' }, script: { type: 'string' } },
    ...{ log: { type: 'boolean' }, crash: { type: 'string' }, lose: { type: 'string' }, shrink: { type: 'boolean' } },
    ...{
      program: { type: 'string' },
      agents: { type: 'string' },
      within: { type: 'string' },
      ccm: { type: 'boolean' },
    },
  },
});
if (values.within !== undefined && !(Number(values.within) > 0)) {
  process.stderr.write(`--within wants a positive number of minutes, not ${values.within}\n`);
  process.exit(2);
}
const PROGRAMS: readonly Program[] = ['ipamd', 'ccm', 'extender', 'agent'];
const keepsLines = values.log === true;
/** Real time, which no simulation may read; taken before it is guarded. */
const realMs = performance.now.bind(performance);

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function report(name: string, seed: number, { world, hash, violations, end, points }: Played): void {
  for (const line of world.record.lines) print(line);
  const seconds = Math.round(world.time.nowMs / 1_000);
  print(`${name} ${JSON.stringify({ seed, hash, lines: world.record.count, points: points.length, seconds })}`);
  print(`  ${end}`);
  for (const { auditor, atMs, text, about = [] } of violations) {
    print(`  ${auditor} at ${atMs.toFixed(0)} ms: ${text}`);
    for (const line of about) print(`    ${line}`);
  }
  if (violations.length > 0) process.exitCode = 1;
}

async function drive(name: string, story: Story): Promise<void> {
  const driver = values.crash === undefined ? driveLosses : driveCrashes;
  const program = PROGRAMS.find((one) => one === values.program) ?? 'ipamd';
  const { failures, places, ...driven } = await driver(story, { program, every: Number(values.crash ?? values.lose) });
  print(`${name} ${JSON.stringify({ ...driven, failures: failures.length, places: Object.fromEntries(places) })}`);
  for (const failure of failures) print(`  ${failure}`);
  if (failures.length > 0) process.exitCode = 1;
}

async function tell(script: Script): Promise<void> {
  const played = await playScript(script, { keepsLines });
  report('script', script.seed, played);
  const [seen] = played.violations;
  if (seen === undefined || values.shrink !== true) return;
  const shrunk = await shrinkScript(script, seen);
  const { atMs, text, auditor } = shrunk.violation;
  const [before, after] = [script.actions.length, shrunk.script.actions.length];
  print(`  ${before} actions -> ${after}, in ${shrunk.runs} runs: ${writeScript(shrunk.script)}`);
  for (const line of renderStory(shrunk.script, `${auditor} at ${atMs.toFixed(0)} ms: ${text}`)) print(line);
}

/** One seed after the other: so many, or for so long, and then at least one. */
function* seeds(first: number): Generator<number> {
  const endMs = realMs() + Number(values.within ?? 0) * 60_000;
  const runs = values.within === undefined ? Number(values.runs ?? 1) : Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs && (values.within === undefined || run === 0 || realMs() < endMs); run++)
    yield first + run;
}

async function tellScripts(): Promise<void> {
  if (values.script !== undefined) {
    await tell(readScript(values.script));
    return;
  }
  const first = values.seed === undefined ? givenOrNewSeed() : Number(values.seed);
  const only = {
    ...(values.agents !== undefined && { isWhole: values.agents === 'whole' }),
    ...(values.ccm === true && { hasCcm: true }),
  };
  print(`simulation: seed ${first}`);
  let last = first;
  for (const seed of seeds(first)) {
    await tell(drawScript(seed, only));
    last = seed;
    // To shrink takes minutes: the first that fails is enough where time is bounded.
    if (values.within !== undefined && process.exitCode === 1) break;
  }
  print(`simulation: ${process.exitCode === 1 ? 'FAILED' : 'passed'}, seeds ${first} to ${last}`);
}

async function tellStories(): Promise<void> {
  const wanted = Object.entries(STORIES).filter(([name]) => values.story === undefined || values.story === name);
  if (wanted.length === 0) {
    process.stderr.write(`no such story: ${values.story}; there are ${Object.keys(STORIES).join(', ')}\n`);
    process.exit(2);
  }
  for (const [name, story] of wanted) {
    if (values.crash !== undefined || values.lose !== undefined) await drive(name, story);
    else
      for (const seed of seeds(Number(values.seed ?? story.seed ?? SEED)))
        report(name, seed, await play(story, { seed, keepsLines }));
  }
}

const isOfScripts = [values.script, values.seed, values.runs, values.within, values.agents].some(
  (one) => one !== undefined,
);
if (values.story === undefined && isOfScripts) await tellScripts();
else await tellStories();
// Programs that were killed sleep forever.
process.exit();
