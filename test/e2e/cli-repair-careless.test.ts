import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { readBootId } from '../../agent/journal/boot-id.ts';
import { createDatabase, rollbackPath } from '../../agent/journal/journal-file.ts';
import { run } from '../../sim/support/run.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { buildExecutables } from '../../tools/build.ts';
import { longTest, partOf, shortTest } from '../support/suite-part.ts';
import { withSeed } from '../support/with-seed.ts';
import { type FaultScene, readFaultScene } from './support/fault-scene.ts';
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
async function onNode(work: (trial: Trial, pod: AttachedPod) => Promise<void>): Promise<void> {
  const trial = await openTrial({ ruleMode: 'compact' });
  try {
    const pod = await trial.addPod();
    await trial.addPod();
    await work(trial, pod);
  } finally {
    await trial.close();
  }
}

const ANEW: Readonly<Record<string, (path: string) => void>> = {
  'made again, whose Pods no agent has adopted yet': (path) => createDatabase(path, readBootId()),
  empty: (path) => writeFileSync(path, ''),
  missing: () => undefined,
  'of another boot': (path) => createDatabase(path, 'another-boot'),
};

for (const [what, make] of partOf(Object.entries(ANEW), ([name]) => name === 'missing')) {
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
      t.regex(stderr, /the desired state of this node is not known/);
      t.regex(stderr, /next: .*agent/);
      t.deepEqual(changesBetween(before, await kernelImage([trial.node.netns])), []);
      t.true(await pod.netns.ping(trial.vpc.outside.ip));
    });
  });
}

shortTest.serial('tke-eni repair: does not write beside an agent that stands still', async (t) => {
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

longTest.serial(
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

shortTest.serial('tke-eni repair: writes into no namespace that a lease’s path leads to by accident', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial, pod) => {
    await trial.killAgent();
    // As when the process whose number is in the path has ended, and the next one with it is of the node.
    await run(['mount', '--bind', trial.node.netns.path, pod.netns.path]);
    try {
      const before = await kernelImage([trial.node.netns]);
      const { stdout, stderr } = await runCli(placeOf(trial), 'repair');
      t.regex(stdout, /not checked[\s\S]*it has no interface eth0/, stderr);
      t.deepEqual(changesBetween(before, await kernelImage([trial.node.netns])), []);
    } finally {
      await run(['umount', pod.netns.path]);
    }
    t.true(await pod.netns.ping(trial.vpc.outside.ip));
  });
});

/** Things that nobody of ours made, in each place where ours are too. */
function foreignCommands(random: () => number, { eni, hostVeth, table: ours }: FaultScene): readonly string[] {
  const from = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const any = <T>(values: readonly T[]): T => values[from(0, values.length - 1)] as T;
  const address = () => `198.${any([18, 19])}.${from(0, 255)}.${from(1, 254)}`;
  const table = () => any(['main', '3999', ours, '777']);
  const kinds = [
    () => `rule add from ${address()} lookup ${table()} priority ${from(1, 32_000)}`,
    () =>
      `rule add to ${address()}/32 fwmark 0x${from(1, 255)} lookup ${table()} priority ${any([512, 1024, 1536, 1537])}`,
    () =>
      `-6 rule add from fd00:9::${from(1, 9_999)} lookup ${table()} priority ${from(1, 32_000)} protocol ${any(['static', 'bird'])}`,
    () => `route add ${address()} dev ${any(['lo', hostVeth, eni.ifname])} table ${table()} metric ${from(1, 99)}`,
    () => `route add blackhole ${address()} table ${table()} protocol ${any(['bird', 'static'])}`,
    () => `address add ${address()}/32 dev ${any(['lo', hostVeth, eni.ifname])}`,
    () =>
      `neigh add ${address()} lladdr 02:00:00:00:00:${from(10, 99)} dev ${any([hostVeth, eni.ifname])} nud permanent`,
  ];
  return Array.from({ length: 40 }, () => any(kinds)());
}

shortTest.serial(
  'tke-eni repair: mends what is ours, and leaves everything else as it was, whatever that is',
  async (t) => {
    t.timeout(240_000);
    await onNode(async (trial, pod) => {
      await trial.killAgent();
      const place = placeOf(trial);
      const { netns } = trial.node;
      const scene = await readFaultScene(trial, pod);
      await withSeed(t, async (seed) => {
        // By chance two are the same: the second is refused then.
        for (const command of foreignCommands(seededRandom(seed), scene))
          await netns.tryRun(['ip', ...command.split(' ')]);
        await netns.nft(
          'table inet other {\n chain c {\n  type filter hook forward priority 7;\n  counter comment "mine"\n }\n}\n',
        );
        const before = await kernelImage([netns]);
        await netns.ip('route', 'delete', `${pod.ip}/32`, 'table', '3999');
        await netns.ip('rule', 'delete', 'priority', '512', 'lookup', '3999');
        await netns.ip('route', 'add', '10.0.2.201/32', 'dev', scene.hostVeth, 'table', '3999', 'proto', '84');
        await netns.sysctl({ 'net/ipv4/ip_forward': 0 });
        const broken = await kernelImage([netns]);
        t.true((await runCli(place, 'repair', '--dry-run')).code === 1);
        t.deepEqual(changesBetween(broken, await kernelImage([netns])), [], 'a dry run changes nothing');
        const { stdout, stderr } = await runCli(place, 'repair');
        t.deepEqual(changesBetween(before, await kernelImage([netns])), [], `${stdout}\n${stderr}`);
      });
    });
  },
);
