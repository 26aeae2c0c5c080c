import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { buildExecutables } from '../../tools/build.ts';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { openTerminal } from '../support/terminal.ts';
import { waitUntil } from '../support/wait-until.ts';
import { placeOf } from './support/fault-trial.ts';
import { askCli, runCli } from './support/run-cli.ts';
import { openTrial, type Trial } from './support/trial.ts';

// What `tke-eni bench` makes on a node is gone afterwards: when it ends, is refused, is interrupted, is killed.

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
});

async function onNode(work: (trial: Trial) => Promise<void>): Promise<void> {
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 12 });
  try {
    await work(trial);
  } finally {
    await trial.close();
  }
}

const linksOf = async ({ node }: Trial) => (await node.netns.ipJson('link')).map(({ ifname }) => String(ifname)).sort();
const podsOf = async (trial: Trial): Promise<readonly { containerId: string }[]> =>
  JSON.parse((await runCli(placeOf(trial), 'pods', '-o', 'json')).stdout);

async function leavesNothing(t: ExecutionContext, trial: Trial, links: readonly string[]): Promise<void> {
  t.deepEqual(await linksOf(trial), links);
  t.is((await podsOf(trial)).length, 1, 'the Pod of the test alone');
  await trial.settle('after the bench');
}

test('bench: measures, refuses to empty the pool, and leaves nothing', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial) => {
    await trial.addPod();
    const links = await linksOf(trial);
    const { code, document } = await askCli(placeOf(trial), 'bench', '-n', '4', '--routes', '200');
    t.is(code, 0);
    t.like(document, { routes: 200, add: { count: 4 }, del: { count: 4 }, routeDump: { count: 10 } });
    t.log(JSON.stringify(document));
    await leavesNothing(t, trial, links);

    const refused = await runCli(placeOf(trial), 'bench', '-n', '40');
    t.is(refused.code, 2);
    t.regex(refused.stderr, /addresses are free; 40 sandboxes and a reserve of 5 need 45/);
    await leavesNothing(t, trial, links);
  });
});

function openBench(trial: Trial, count: number) {
  const { agent, node } = trial;
  const places = ['--state-dir', agent.stateDir, '--socket', agent.socketPath];
  const argv = [join(DIST_BIN_DIR, 'tke-eni'), 'bench', '-n', `${count}`, '--force', ...places];
  // The shell tells its process id, and becomes the program.
  return openTerminal(node.netns.argv(['sh', '-c', `echo pid $$; exec ${argv.join(' ')}`]), { columns: 120 });
}

test('bench: interrupted it gives back what it has; killed, the next run does', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial) => {
    await trial.addPod();
    const links = await linksOf(trial);
    const busy = (screen: readonly string[]) => screen.some((line) => /^sandbox \d+ of/.test(line));
    const pidOf = (raw: string) => /pid (\d+)/.exec(raw)?.[1] ?? '';
    {
      await using terminal = await openBench(trial, 200);
      await terminal.waitFor('a sandbox', busy);
      terminal.type('\u0003');
      t.not(await terminal.exited, 0);
      await leavesNothing(t, trial, links);
    }
    // Its cooldowns are three seconds here; a run needs some addresses.
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    await using terminal = await openBench(trial, 200);
    await terminal.waitFor('a sandbox', busy);
    const pid = pidOf(terminal.raw());
    // Killed at any moment it most likely has a sandbox: making the namespace is the smallest part.
    await waitUntil(async () => (await linksOf(trial)).length > links.length, { what: 'a sandbox', everyMs: 1 });
    process.kill(Number(pid), 'SIGKILL');
    await terminal.exited;
    const next = await runCli(placeOf(trial), 'bench', '-n', '1', '--force', '--routes', '0');
    t.is(next.code, 0, next.stderr);
    await leavesNothing(t, trial, links);
  });
});
