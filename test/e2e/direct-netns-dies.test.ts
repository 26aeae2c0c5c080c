import { rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { childEnv } from '../../sim/support/child-env.ts';
import { uninstallArgv } from './support/leaving.ts';
import { openTrial, type Trial, type TrialSpec } from './support/trial.ts';

const SPEC: TrialSpec = { ruleMode: 'compact', plugin: 'tke-direct-eni', directEnis: 2 };

async function withTrial(spec: TrialSpec, run: (trial: Trial) => Promise<void>): Promise<void> {
  const trial = await openTrial(spec);
  try {
    await run(trial);
  } finally {
    await trial.close();
  }
}

test('agent: a namespace that dies with its ENI while the agent is dead: the ENI is back in use', async (t) => {
  await withTrial(SPEC, async (trial) => {
    const [one, other] = [await trial.addPod(), await trial.addPod()];
    const eniId = trial.vpc.eniOf(one.ip) ?? '';
    await trial.killAgent();
    await one.netns.close();
    // A veth dies with the namespace that it sits in; a real interface comes back, here before the agent does.
    await trial.vpc.replug(eniId);
    await trial.startAgent();
    t.true(await other.netns.ping(trial.vpc.outside.ip));
    await trial.delete(one);
    await trial.settle('after the DEL of a Pod without namespace');
    const next = await trial.addPod();
    t.is(trial.vpc.eniOf(next.ip), eniId);
    t.true(await next.netns.ping(trial.vpc.outside.ip));
    t.true(await trial.node.netns.ping(next.ip));
  });
});

test('agent: an interface that comes back by itself with its Pod’s alias and name is put to rest', async (t) => {
  await withTrial(SPEC, async (trial) => {
    const pod = await trial.addPod();
    // What the kernel does when a namespace dies: the interface comes back as it was, under a name that is free.
    await pod.netns.ip('link', 'set', 'eth0', 'name', 'dev77');
    await trial.killAgent();
    await pod.netns.ip('link', 'set', 'dev77', 'netns', trial.node.netns.name);
    await trial.node.netns.ip('link', 'set', 'dev77', 'up');
    await trial.node.netns.ip('address', 'add', `${pod.ip}/24`, 'dev', 'dev77');
    await trial.startAgent();
    await trial.delete(pod);
    await trial.settle('after the DEL');
    t.pass();
  });
});

test('agent: the lease is gone, and the interface comes back only then: it is put to rest by repair', async (t) => {
  await withTrial(SPEC, async (trial) => {
    const pod = await trial.addPod();
    await pod.netns.ip('link', 'set', 'eth0', 'down');
    // Out of sight: in a namespace that nobody named to the agent.
    const elsewhere = await trial.node.newNetns();
    await pod.netns.ip('link', 'set', 'eth0', 'netns', elsewhere.name);
    await trial.delete(pod);
    await elsewhere.ip('link', 'set', 'eth0', 'name', 'dev78');
    await elsewhere.ip('link', 'set', 'dev78', 'netns', trial.node.netns.name);
    await trial.settle('after the interface came back');
    t.pass();
  });
});

test('agent: Pods with whole ENIs live through a journal that is lost', async (t) => {
  await withTrial(SPEC, async (trial) => {
    const pods = [await trial.addPod(), await trial.addPod()];
    await trial.killAgent();
    rmSync(join(trial.agent.stateDir, 'journal.db'));
    await trial.startAgent();
    await trial.settle('after adoption');
    for (const pod of pods) {
      t.true(await pod.netns.ping(trial.vpc.outside.ip));
      t.true(await trial.node.netns.ping(pod.ip));
      await trial.delete(pod);
    }
    await trial.settle('after the DELs');
  });
});

test('agent: uninstalled despite its Pods, it gives their ENIs back to the node', async (t) => {
  await withTrial(SPEC, async (trial) => {
    const { netns } = trial.node;
    const nicsOf = async () => (await netns.ipJson('link')).map(({ ifname, address }) => `${ifname} ${address}`);
    const before = await nicsOf();
    const pods = [await trial.addPod(), await trial.addPod()];
    await trial.killAgent();
    const lives = await netns.tryRun(uninstallArgv(trial.node, []), { env: childEnv() });
    t.not(lives.code, 0);
    t.regex(lives.stdout + lives.stderr, /2 attachments may be in use/);
    const done = await netns.tryRun(uninstallArgv(trial.node, ['--despite-pods']), { env: childEnv() });
    t.is(done.code, 0, done.stdout + done.stderr);
    t.deepEqual(await nicsOf(), before);
    for (const { mac } of trial.directEnis) {
      const [link] = (await netns.ipJson('link')).filter(({ address }) => address === mac);
      t.notRegex(JSON.stringify(link), /"UP"|ifalias/);
    }
    for (const pod of pods) t.deepEqual(await pod.netns.linkNames(), ['lo']);
  });
});
