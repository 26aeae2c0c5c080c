import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { CNI_DIR, hasLauncher } from '../support/executables.ts';
import { everyPoint, type KillPoint, parseCall } from './support/strace.ts';
import { openTrial, type Trial } from './support/trial.ts';

// The launcher is killed with SIGKILL as it enters a system call of an ADD or a DEL, one after the other; then each of
// its system calls fails. Each time the runtime's next call must work, and no address may be lost.

const hasStrace = spawnSync('strace', ['--version']).status === 0;
const crashTest = hasLauncher && hasStrace ? test.serial : test.serial.skip;

const LAUNCHED = join(CNI_DIR, 'tke-route-eni');
/** Calls that fail only where the kernel is broken, and end the program. */
const UNFAILING = new Set(['execve', 'exit_group', 'clock_gettime']);

let trial: Trial;

test.before(async () => {
  if (!hasLauncher || !hasStrace) return;
  trial = await openTrial({ ruleMode: 'compact', flags: { 'ip-cooldown': '0s' } });
  mkdirSync(binDir());
  process.env['TKE_ENI_CNI_BIN'] = binDir();
  callLauncher();
});
test.after.always(() => trial?.close());

const binDir = (): string => trial.dir.join('bin');
const record = (): string => trial.dir.join('launcher.strace');

/** Says what the runtime's next calls run: the launcher, under strace with these options, or by itself. */
function callLauncher(strace?: readonly string[]): void {
  rmSync(record(), { force: true });
  const words = strace === undefined ? [LAUNCHED] : ['strace', '-yy', '-o', record(), ...strace, LAUNCHED];
  const path = join(binDir(), 'tke-route-eni');
  writeFileSync(path, `#!/bin/sh\nexec ${words.map((word) => `'${word}'`).join(' ')}\n`);
  chmodSync(path, 0o755);
}

/** Records the system calls of the launcher in an ADD and in a DEL. */
async function recordLife(): Promise<{ readonly adds: readonly KillPoint[]; readonly dels: readonly KillPoint[] }> {
  const points = () =>
    everyPoint(
      readFileSync(record(), 'utf8')
        .split('\n')
        .flatMap((line) => parseCall(`1 ${line}`)),
    );
  const pod = await trial.newPod();
  callLauncher([]);
  await trial.add(pod);
  const adds = points();
  callLauncher([]);
  await trial.delete(pod);
  const dels = points();
  callLauncher();
  return { adds, dels };
}

/** Makes a call in which strace does `what` at the point. Returns what the runtime gets, and whether the point came. */
async function callWith(what: string, { name, nth }: KillPoint, call: () => ReturnType<Trial['tryAdd']>) {
  callLauncher(['-e', `trace=${name}`, '-e', `inject=${name}:${what}:when=${nth}`]);
  const answer = await call();
  const text = existsSync(record()) ? readFileSync(record(), 'utf8') : '';
  callLauncher();
  return { answer, text };
}

/** ADD that is cut short, then repeated or, as after a sandbox that failed, undone; then DEL, cut short and repeated. */
async function live(what: string, add: KillPoint | undefined, del: KillPoint | undefined, isRepeated: boolean) {
  const answers = [];
  const pod = await trial.newPod();
  if (add !== undefined) answers.push(await callWith(what, add, () => trial.tryAdd(pod)));
  if (isRepeated) {
    const { netns } = await trial.add(pod);
    if (!(await netns.ping(trial.vpc.outside.ip))) throw new Error(`no network after ADD ${add?.name} ${add?.nth}`);
    if (del !== undefined) answers.push(await callWith(what, del, () => trial.tryDelete(pod)));
  }
  await trial.delete(pod);
  await trial.settle(`after ${what} at ADD ${add?.name} ${add?.nth}, DEL ${del?.name} ${del?.nth}`);
  return answers;
}

/** Every address is still to be had. */
async function addAll(): Promise<void> {
  const pods = [];
  for (let count = 0; count < 24; count++) pods.push(await trial.addPod());
  for (const pod of pods) await trial.delete(pod);
  await trial.settle('after all addresses were given and returned');
}

crashTest(
  'launcher: killed at any system call of ADD or DEL, the next call of the runtime works and no address is lost',
  async (t) => {
    t.timeout(600_000);
    const { adds, dels } = await recordLife();
    t.true(adds.length > 10 && dels.length > 10, `${adds.length} points of ADD, ${dels.length} of DEL`);
    let reached = 0;
    for (let at = 0; at < Math.max(adds.length, dels.length); at++) {
      for (const isRepeated of [true, false]) {
        for (const { answer, text } of await live('signal=KILL', adds[at], dels[at], isRepeated)) {
          if (!text.includes('+++ killed by SIGKILL +++')) continue;
          reached++;
          t.is(answer.exitCode, null);
        }
      }
    }
    // ADD in two ways, DEL in one. How often the launcher polls and reads depends on how its answer arrives.
    const tried = 2 * adds.length + dels.length;
    t.true(reached > 0.8 * tried, `${reached} of ${tried} points were reached`);
    await addAll();
    t.log(`figure: killed at ${reached} of ${tried} points; ADD has ${adds.length} system calls, DEL ${dels.length}`);
  },
);

crashTest(
  'launcher: whichever of its system calls fails, the runtime gets an answer of CNI, and the next call works',
  async (t) => {
    t.timeout(600_000);
    const { adds, dels } = await recordLife();
    const failing = (points: readonly KillPoint[]) => points.filter(({ name }) => !UNFAILING.has(name));
    const [failingAdds, failingDels] = [failing(adds), failing(dels)];
    let injected = 0;
    for (let at = 0; at < Math.max(failingAdds.length, failingDels.length); at++) {
      for (const { answer, text } of await live('error=EIO', failingAdds[at], failingDels[at], true)) {
        if (!text.includes('(INJECTED)')) continue;
        injected++;
        // Where even printing fails nobody can be told: then the exit code alone says so.
        t.true(answer.exitCode === 0 || answer.exitCode === 1, `${text}\n${answer.stdout}${answer.stderr}`);
        t.true(
          answer.exitCode === 0 || answer.error?.code === 11 || text.includes('write('),
          `${text}\n${answer.stdout}`,
        );
      }
    }
    t.true(injected > 0.8 * (failingAdds.length + failingDels.length), `${injected} calls failed`);
    await addAll();
  },
);
