import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { readBootId } from '../../agent/journal/boot-id.ts';
import { createDatabase, rollbackPath } from '../../agent/journal/journal-file.ts';
import { buildExecutables } from '../../tools/build.ts';
import { placeOf } from './support/fault-trial.ts';
import { changesBetween, kernelImage } from './support/kernel-image.ts';
import { runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
});

/** Runs a test on a node with a running agent and two Pods. */
async function onNode(run: (trial: Trial, pod: AttachedPod) => Promise<void>): Promise<void> {
  const trial = await openTrial({ ruleMode: 'compact' });
  try {
    const pod = await trial.addPod();
    await trial.addPod();
    await run(trial, pod);
  } finally {
    await trial.close();
  }
}

const ANEW: Readonly<Record<string, (path: string) => void>> = {
  'made anew, whose Pods no agent has adopted yet': (path) => createDatabase(path, readBootId()),
  empty: (path) => writeFileSync(path, ''),
  missing: () => undefined,
  'of another boot': (path) => createDatabase(path, 'another-boot'),
};

for (const [what, make] of Object.entries(ANEW)) {
  test.serial(`tke-eni repair: by a journal that is ${what} takes no Pod down`, async (t) => {
    t.timeout(120_000);
    await onNode(async (trial, pod) => {
      await trial.killAgent();
      const path = join(trial.agent.stateDir, 'journal.db');
      rmSync(path);
      rmSync(rollbackPath(path), { force: true });
      make(path);
      await trial.node.netns.sysctl({ 'net/ipv4/ip_forward': 1 });
      const before = await kernelImage([trial.node.netns]);
      const { code, stderr } = await runCli(placeOf(trial), 'repair');
      t.is(code, 2, stderr);
      t.regex(stderr, /nothing says how this node should be/);
      t.regex(stderr, /next: .*agent/);
      t.deepEqual(changesBetween(before, await kernelImage([trial.node.netns])), []);
      t.true(await pod.netns.ping(trial.vpc.outside.ip));
    });
  });
}

test.serial('tke-eni repair: does not write beside an agent that stands still', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial) => {
    await trial.node.netns.sysctl({ 'net/ipv4/ip_forward': 0 });
    process.kill(trial.agent.pid, 'SIGSTOP');
    const before = await kernelImage([trial.node.netns]);
    try {
      const { code, stderr } = await runCli(placeOf(trial), 'repair');
      t.is(code, 2, stderr);
      t.regex(stderr, /agent/);
      t.deepEqual(changesBetween(before, await kernelImage([trial.node.netns])), []);
    } finally {
      process.kill(trial.agent.pid, 'SIGCONT');
      await sleep(0);
    }
  });
});

test.serial(
  'tke-eni repair: two at once without an agent mend once, or one of them says that the other is at it',
  async (t) => {
    t.timeout(120_000);
    await onNode(async (trial, pod) => {
      await trial.killAgent();
      await trial.node.netns.sysctl({ 'net/ipv4/ip_forward': 0 });
      await trial.node.netns.ip('route', 'delete', `${pod.ip}/32`, 'table', '3999');
      const place = placeOf(trial);
      const both = await Promise.all([runCli(place, 'repair'), runCli(place, 'repair')]);
      for (const { code, stderr } of both)
        t.true(code === 0 || (code === 2 && /journal\.db open/.test(stderr)), stderr);
      t.true(
        both.some(({ code }) => code === 0),
        JSON.stringify(both),
      );
      t.is((await runCli(place, 'check', '--quiet')).code, 0);
      t.true(await pod.netns.ping(trial.vpc.outside.ip));
    });
  },
);
