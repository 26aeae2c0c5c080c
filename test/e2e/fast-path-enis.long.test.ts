// Long: links of new Pods get their filters after 5 s, and UDP is learned after 2 s.
import test, { type ExecutionContext } from 'ava';
import type { AttachedEni } from '../../sim/vpc/nic.ts';
import { createPodNetns } from '../support/pod-netns.ts';
import { waitUntil } from '../support/wait-until.ts';
import { countedSince, silence, watchInput } from './packets/watch.ts';
import { programFilters } from './support/fast-filters.ts';
import { type FastTrial, withFastTrial } from './support/fast-trial.ts';
import { awaitLearned } from './support/learned-flows.ts';
import { FIRST_PORT } from './support/live-flows.ts';

// An ENI goes, or fails, under learned flows of its Pod; those of the other ENI's Pod go on without a loss.

test.serial('an ENI that is set down is set up, and its flows are learned again', async (t) => {
  await withEni(t, async (scene, eni) => {
    const epoch = scene.programs.epoch();
    await scene.trial.node.netns.ip('link', 'set', eni.ifname, 'down');
    await waitUntil(() => scene.programs.epoch() !== epoch, { what: 'the end of all flows' });
    await arriveAgain(t, scene, eni.ifname);
  });
});

test.serial('an ENI in another namespace sends nothing of its former flows', async (t) => {
  await withEni(t, async (scene, { ifname }) => {
    const { trial } = scene;
    const { netns } = trial.node;
    const other = await createPodNetns(`${trial.vpc.prefix}elsewhere`);
    await netns.ip('link', 'set', ifname, 'netns', other.name);
    await other.ip('link', 'set', ifname, 'up');
    await stopped(t, scene);
    t.is(await countedSince(await watchInput(trial.vpc.outside.netns, FIRST_PORT.udp), 1_000), 0);
    await other.ip('link', 'set', ifname, 'netns', netns.name);
    await arriveAgain(t, scene, ifname);
  });
});

test.serial(
  'an ENI that was away for a moment, which the agent notices when it is back, gets its filters at once',
  async (t) => {
    await withEni(t, async (scene, { ifname }) => {
      const { trial } = scene;
      const { agent } = trial;
      const { netns } = trial.node;
      const other = await createPodNetns(`${trial.vpc.prefix}elsewhere`);
      agent.kill('SIGSTOP');
      try {
        await netns.ip('link', 'set', ifname, 'netns', other.name);
        await other.ip('link', 'set', ifname, 'netns', netns.name);
      } finally {
        agent.kill('SIGCONT');
      }
      t.deepEqual(
        (await programFilters(netns)).filter(({ dev }) => dev === ifname),
        [],
      );
      await arriveAgain(t, scene, ifname);
    });
  },
);

test.serial('an ENI that is detached and comes back: its flows end, and are learned by the new link', async (t) => {
  await withEni(t, async (scene, { eniId, ifname }) => {
    const { trial } = scene;
    await trial.node.netns.ip('link', 'del', ifname);
    await stopped(t, scene);
    await arriveAgain(t, scene, (await trial.vpc.replug(eniId)).ifname);
  });
});

/** Runs with the ENI of the first way; the ways of the other ENI and within the node have to lose nothing. */
async function withEni(t: ExecutionContext, run: (scene: FastTrial, eni: AttachedEni) => Promise<void>): Promise<void> {
  t.timeout(180_000);
  await withFastTrial({}, async (scene) => {
    const [eni] = scene.trial.enis;
    if (eni === undefined) throw new Error('the trial has no ENI');
    await run(scene, eni);
    const lost = await scene.flows.finish();
    // What was sent meanwhile is lost; the connection is not.
    t.deepEqual(
      lost.filter((line) => !line.startsWith('UDP to the outside: ')),
      [],
    );
    t.true(
      lost.every((line) => !/[1-9]\d* doubled/.test(line)),
      String(lost),
    );
    t.true(scene.trial.agent.child.isRunning);
    t.notRegex(scene.trial.agent.logs(), /"level":"error"/);
  });
}

/** The first way is over: nothing arrives, nothing is learned. */
async function stopped(t: ExecutionContext, { trial, programs, ways }: FastTrial): Promise<void> {
  const [way] = ways;
  await silence(await watchInput(trial.vpc.outside.netns, FIRST_PORT.udp));
  const isOver = () => programs.flows().every(({ src, dst }) => src !== way?.a.ip || dst !== way?.b.ip);
  await waitUntil(isOver, { what: 'the flows to be forgotten' });
  t.true(trial.agent.child.isRunning);
}

/** The first way works again, by a link that has its filters, and the programs follow it. */
async function arriveAgain(t: ExecutionContext, { trial, programs, ways }: FastTrial, ifname: string): Promise<void> {
  const got = await watchInput(trial.vpc.outside.netns, FIRST_PORT.udp);
  await waitUntil(async () => (await got()) > 0, {
    what: 'packets of the ENI’s Pod',
    explain: () => trial.lastWords(),
  });
  await waitUntil(
    async () => (await programFilters(trial.node.netns)).filter(({ dev }) => dev === ifname).length === 2,
    { what: `filters on ${ifname}`, everyMs: 100, explain: () => trial.lastWords() },
  );
  const [link] = await trial.node.netns.ipJson('link', 'show', ifname);
  const [src, dst] = [ways[0]?.a.ip ?? '', ways[0]?.b.ip ?? ''];
  const { oif } = await awaitLearned(programs, { src, dst, dport: FIRST_PORT.udp });
  t.is(oif, Number(link?.['ifindex']));
}
