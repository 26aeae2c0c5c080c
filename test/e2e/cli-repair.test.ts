import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { lockJournal } from '../../cli/commands/repair/run-repair.ts';
import { buildExecutables } from '../../tools/build.ts';
import { readFaultScene } from './support/fault-scene.ts';
import { placeOf } from './support/fault-trial.ts';
import { changesBetween, kernelImage } from './support/kernel-image.ts';
import { NODE_FAULTS } from './support/node-faults.ts';
import { askCli, listOf, runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
});

const WRONG_GATEWAY = ['neigh', 'replace', '169.254.1.1', 'lladdr', '02:de:ad:be:ef:02', 'dev', 'eth0'] as const;

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

test.serial('tke-eni repair: has the running agent mend the host, and mends Pods beside it', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial, pod) => {
    const place = placeOf(trial);
    const { eni } = await readFaultScene(trial, pod);
    await pod.netns.ip(...WRONG_GATEWAY, 'nud', 'permanent');
    t.false(await pod.netns.ping(trial.vpc.outside.ip, { waitMs: 1_500 }));
    const dry = await askCli(place, 'repair', '--dry-run');
    t.is(dry.code, 1);
    t.false(await pod.netns.ping(trial.vpc.outside.ip, { waitMs: 1_500 }), 'a dry run changes nothing');

    // While the agent stands still it cannot be quicker than the repair that is asked of it.
    trial.agent.kill('SIGSTOP');
    const rpFilter = `net/ipv4/conf/${eni.ifname}/rp_filter`;
    await trial.node.netns.sysctl({ 'net/ipv4/ip_forward': 0, [rpFilter]: 1 });
    const logged = trial.agent.logs().length;
    const asked = askCli(place, 'repair');
    trial.agent.kill('SIGCONT');
    const { code, document } = await asked;
    t.is(code, 0, JSON.stringify(document));
    t.is(document['writer'], 'agent');
    t.true(await pod.netns.ping(trial.vpc.outside.ip));
    const words = trial.agent.logs().slice(logged);
    t.true(words.includes('sysctl -w net.ipv4.ip_forward=1'), 'it was the agent that wrote');
    t.false(words.includes('169.254.1.1'), 'the Pod was not the agent’s');
    t.is((await runCli(place, 'check', '--quiet')).code, 0);
  });
});

test.serial('tke-eni repair: beside a running agent refuses what is foreign, and removes a leaked veth', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial, pod) => {
    const place = placeOf(trial);
    const scene = await readFaultScene(trial, pod);
    const kinds = ['foreign-rule-above-ours', 'veth-leaked', 'pod-without-lease'];
    const faults = NODE_FAULTS.filter(({ expects }) => kinds.includes(expects.diff));
    t.deepEqual(new Set(faults.map(({ expects }) => expects.diff)), new Set(kinds));
    for (const fault of faults) {
      await fault.inject(scene);
      const { code, document } = await askCli(place, 'repair');
      const left = listOf(document, 'left').map(({ id }) => id);
      t.is(document['writer'], 'agent', fault.name);
      t.is(code, fault.expects.repair === 'mends' ? 0 : 1, `${fault.name}: ${JSON.stringify(document)}`);
      t.is(left.includes(fault.expects.diff), fault.expects.repair === 'refuses', fault.name);
      await fault.undo?.(scene);
    }
    t.is((await runCli(place, 'diff')).code, 0);
    await trial.settle('after repairs beside the agent');
  });
});

test.serial('tke-eni repair: refuses beside an agent that it cannot ask', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial) => {
    // The agent stands still: what changes is not its own repair.
    trial.agent.kill('SIGSTOP');
    try {
      await trial.node.netns.sysctl({ 'net/ipv4/ip_forward': 0 });
      const before = await kernelImage([trial.node.netns]);
      const place = { ...placeOf(trial), socketPath: trial.dir.join('nobody.sock') };
      const { code, stderr } = await runCli(place, 'repair');
      t.is(code, 2);
      t.regex(stderr, /an agent has .*journal\.db open/);
      t.regex(stderr, /--socket/, 'it says what to do');
      t.deepEqual(changesBetween(before, await kernelImage([trial.node.netns])), []);
    } finally {
      trial.agent.kill('SIGCONT');
    }
  });
});

test.serial('lockJournal: keeps an agent from starting until it is given back', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial) => {
    await trial.killAgent();
    const held = lockJournal(trial.agent.stateDir, 'it is dead');
    try {
      const error = await t.throwsAsync(trial.startAgent());
      t.regex(error?.message ?? '', /another process has it open/);
    } finally {
      held[Symbol.dispose]();
    }
    await trial.startAgent();
    await trial.settle('after the journal was given back');
  });
});

test.serial(
  'tke-eni diff: without node record judges what the journal decides and says what it leaves out',
  async (t) => {
    t.timeout(120_000);
    await onNode(async (trial, pod) => {
      const place = placeOf(trial);
      await trial.killAgent();
      rmSync(join(trial.agent.stateDir, 'node.json'));
      const whole = await askCli(place, 'diff');
      t.is(whole.code, 0, JSON.stringify(whole.document));
      t.true(listOf(whole.document, 'unjudged').some(({ what }) => String(what).includes('nftables')));
      // Nobody can know whether somebody wants it: it is not told, and not touched.
      const { hostVeth } = await readFaultScene(trial, pod);
      const stale = ['10.0.2.200/32', 'dev', hostVeth, 'table', '3999', 'proto', '84', 'scope', 'link'];
      await trial.node.netns.ip('route', 'add', ...stale);
      await trial.node.netns.ip('route', 'delete', `${pod.ip}/32`, 'table', '3999');
      const { code, document } = await askCli(place, 'repair');
      t.is(code, 0, JSON.stringify(document));
      t.true(await pod.netns.ping(trial.vpc.outside.ip));
      t.is((await trial.node.netns.ipJson('route', 'show', 'table', '3999', '10.0.2.200')).length, 1);
    });
  },
);

test.serial('tke-eni diff: says so when nothing tells how the node should be', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial) => {
    const place = placeOf(trial);
    const nowhere = await runCli({ ...place, stateDir: trial.dir.join('nowhere') }, 'diff');
    t.is(nowhere.code, 2);
    t.regex(nowhere.stderr, /there is no .*journal\.db/);
    await trial.killAgent();
    writeFileSync(join(trial.agent.stateDir, 'journal.db'), 'this was a journal');
    const damaged = await runCli(place, 'repair');
    t.is(damaged.code, 2);
    t.regex(damaged.stderr, /journal/);
  });
});

test.serial('tke-eni diff: names a Pod whose sandbox died without a DEL', async (t) => {
  t.timeout(120_000);
  await onNode(async (trial, pod) => {
    const place = placeOf(trial);
    await trial.killAgent();
    await pod.netns.close();
    const { code, document } = await askCli(place, 'diff');
    t.is(code, 1);
    const found = listOf(document, 'differences').find(({ id }) => id === 'lease-without-sandbox');
    t.is(found?.['whose'], `Pod ${pod.namespace}/${pod.name}`);
    const repair = await askCli(place, 'repair');
    t.is(repair.code, 1, 'a sandbox is not ours to bring back');
    t.true(listOf(repair.document, 'left').some(({ id }) => id === 'lease-without-sandbox'));
  });
});
