import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { run, tryRun } from '../../sim/support/run.ts';
import { buildExecutables } from '../../tools/build.ts';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { openTerminal } from '../support/terminal.ts';
import { waitUntil } from '../support/wait-until.ts';
import { placeOf } from './support/fault-trial.ts';
import { askCli, listOf, runCli } from './support/run-cli.ts';
import { openTrial, type Trial } from './support/trial.ts';

// A real agent, and what the packaged tke-eni shows of it; judged by `ip`, by the CNI results and by what was done.

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
});

async function onNode(work: (trial: Trial) => Promise<void>): Promise<void> {
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 6 });
  try {
    await work(trial);
  } finally {
    await trial.close();
  }
}

const countsOf = async (trial: Trial) => {
  const { document } = await askCli(placeOf(trial), 'pool');
  const uses = listOf(document, 'addresses').map(({ use }) => String(use));
  return { document, inUse: uses.filter((use) => use === 'in-use').length, total: uses.length };
};

test('pool, pods, enis, status: show what was given, by agent and by journal alike', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial) => {
    const pod = await trial.addPod({ namespace: 'shop', name: 'cart-0' });
    await trial.addPod();
    const place = placeOf(trial);
    const { document, inUse, total } = await countsOf(trial);
    t.is(document['source'], 'agent');
    t.is(inUse, 2);
    t.is(total, 12);

    const pods = await runCli(place, 'pods', pod.ip, '-o', 'json');
    const [row] = JSON.parse(pods.stdout);
    const routes = await trial.node.netns.ipJson('route', 'show', 'table', 'all', pod.ip);
    t.like(row, { namespace: 'shop', pod: 'cart-0', ips: [pod.ip], state: 'active', containerId: pod.containerId });
    t.is(row.veth, routes[0]?.['dev']);
    t.is(row.netns, pod.netns.path);

    const enis = JSON.parse((await runCli(place, 'enis', '-o', 'json')).stdout);
    t.deepEqual(
      enis.map(({ eniId, ifname, ready }: Record<string, unknown>) => ({ eniId, ifname, ready })),
      [
        { eniId: 'eni-1', ifname: 'eth1', ready: true },
        { eniId: 'eni-2', ifname: 'eth2', ready: true },
      ],
    );

    const status = await runCli(place, 'status', '--all-addresses');
    t.is(status.code, 0, status.stdout);
    t.regex(status.stdout, /^ready +yes$/m);
    t.regex(status.stdout, new RegExp(`^${pod.ip.replaceAll('.', '\\.')} +eni-\\d +in-use +shop/cart-0`, 'm'));

    const whileItRuns = await runCli(place, 'pods', '-o', 'json');
    trial.agent.kill('SIGSTOP');
    const stopped = await runCli({ ...place, agentTimeout: '0.2' }, 'status');
    const whileItStands = await runCli(place, 'pods', '-o', 'json');
    trial.agent.kill('SIGCONT');
    t.is(stopped.code, 1);
    t.regex(stopped.stdout, /^agent +NO ANSWER$/m);
    t.regex(stopped.stdout, /: 2 in use, 10 free$/m);
    t.deepEqual(withoutAges(whileItStands.stdout), withoutAges(whileItRuns.stdout));

    await trial.killAgent();
    const left = await countsOf(trial);
    t.is(left.document['source'], 'journal');
    t.is(left.inUse, 2);
    t.is(left.total, 12);
    const dead = await runCli(place, 'status');
    t.is(dead.code, 1);
    t.regex(dead.stdout, /^agent +NOT RUNNING$/m);
  });
});

function withoutAges(pods: string): unknown {
  return JSON.parse(pods, (key, value) => (key === 'ageMs' ? 0 : value));
}

test('watch and events: tell the story of a Pod, of a stranger’s change and of its repair', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial) => {
    const { netns } = trial.node;
    const places = ['--state-dir', trial.agent.stateDir, '--socket', trial.agent.socketPath];
    const argv = [...netns.argv([join(DIST_BIN_DIR, 'tke-eni'), 'watch']), ...places];
    await using terminal = await openTerminal(argv, { columns: 160, rows: 50 });
    const sees = (what: string, pattern: RegExp) =>
      waitUntil(() => terminal.lines().some((line) => pattern.test(line)), {
        what,
        explain: () => terminal.lines().join('\n'),
      });
    let tries = 0;
    await waitUntil(
      async () => {
        await netns.ip('rule', 'add', 'pref', `${2000 + tries++}`, 'from', '192.0.2.1', 'lookup', '100');
        return terminal.lines().some((line) => /\+ rule +- +from 192\.0\.2\.1/.test(line));
      },
      { what: 'the watch to be open', everyMs: 100 },
    );
    await sees('all that was added so far', new RegExp(`pref ${2000 + tries - 1}`));
    // The names of Pods are read again after 100 ms at the earliest.
    await setTimeout(150);
    const pod = await trial.addPod({ namespace: 'shop', name: 'cart-0' });
    await sees('the route', new RegExp(`\\* \\+ route +shop/cart-0 +${pod.ip}/32 .* table 3999 proto 84`));
    await sees('the ADD', new RegExp(`A +add +shop/cart-0 .*${pod.ip}.* in `));
    await netns.ip('rule', 'del', 'pref', '1537');
    await sees('the removal', /\* - rule +eni-\d/);
    await sees('that it is back', /\* \+ rule +eni-\d .* pref 1537/);
    await sees('the repair', /A +repair /);
    await trial.delete(pod);
    await sees('the DEL', /A +del +shop\/cart-0/);
    terminal.type('\u0003');
    t.is(await terminal.exited, 0);

    const events = await runCli(placeOf(trial), 'events', '--pod', 'shop/cart-0', '-o', 'json');
    const told = JSON.parse(events.stdout);
    t.deepEqual(
      told.map(({ kind, isFailure }: Record<string, unknown>) => [kind, isFailure]),
      [
        ['ADD', false],
        ['DEL', false],
      ],
    );
    t.true(told[0].text.includes(pod.ip));
    t.true(JSON.stringify(told[0].operations).includes(pod.ip));
  });
});

test('top: shows a real agent, before and after an ADD', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial) => {
    const argv = [join(DIST_BIN_DIR, 'tke-eni'), 'top', '--interval', '0.3', '--socket', trial.agent.socketPath];
    await using terminal = await openTerminal(argv, { columns: 100, rows: 30 });
    await terminal.waitFor('an empty node', (screen) => screen.some((line) => /^addresses .* 0\/12 in use/.test(line)));
    await trial.addPod();
    const screen = await terminal.waitFor('the ADD', (seen) => seen.some((line) => /^ {2}ADD .* 1$/.test(line)));
    t.true(
      screen.some((line) => /^addresses .*█.* 1\/12 in use/.test(line)),
      screen.join('\n'),
    );
    terminal.type('q');
    t.is(await terminal.exited, 0);
    t.false(terminal.isAlternate());
  });
});

async function bundleOf(t: ExecutionContext, trial: Trial, name: string) {
  const path = join(trial.dir.path, `${name}.tar.gz`);
  const made = await runCli(placeOf(trial), 'bundle', '-o', path);
  t.is(made.stdout.trim(), path, made.stderr);
  t.is(statSync(path).mode & 0o777, 0o600);
  const folder = join(trial.dir.path, name);
  mkdirSync(folder);
  await run(['tar', '-xzf', path, '-C', folder, '--strip-components=1']);
  const { stdout } = await tryRun(['grep', '-rno', '.\\{0,60\\}\\[removed.\\{0,20\\}', folder]);
  return { made, read: (part: string) => run(['cat', join(folder, part)]), removed: stdout };
}

test('bundle: of a well node and of a broken one without an agent', async (t) => {
  t.timeout(180_000);
  await onNode(async (trial) => {
    const pod = await trial.addPod({ namespace: 'shop', name: 'cart-0' });
    const well = await bundleOf(t, trial, 'well');
    t.regex(await well.read('agent/recorder.json'), /"pod": "shop\/cart-0"/);
    t.regex(await well.read('explain-broken-pods.txt'), /^1 Pods, 1 looked at, 0 broken/);
    t.regex(await well.read('node/journal.json'), new RegExp(pod.containerId));
    t.regex(await well.read('kernel/nft-ruleset.txt'), /table inet tke_eni/);

    t.is(well.removed, '', 'nothing of a node without secrets is taken for one');

    await trial.killAgent();
    await trial.node.netns.ip('route', 'del', `${pod.ip}/32`, 'table', '3999');
    const broken = await bundleOf(t, trial, 'broken');
    t.is(broken.made.code, 1);
    t.regex(await broken.read('agent/recorder.json.missing'), /agent does not answer/);
    t.regex(await broken.read('explain-broken-pods.txt'), /1 broken[\s\S]*shop\/cart-0/);
    t.regex(await broken.read('diff.json'), new RegExp(pod.ip));
  });
});
