// Long: links of new Pods get their filters after 5 s, UDP is learned after 2 s, and agents start again.
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { startTcpStream } from '../support/tcp-stream.ts';
import { waitUntil } from '../support/wait-until.ts';
import { countedSince, watchForward, watchInput } from './packets/watch.ts';
import { programFilters } from './support/fast-filters.ts';
import { type FastTrial, withFastTrial } from './support/fast-trial.ts';
import { FIRST_PORT } from './support/live-flows.ts';
import { RULE_MODES } from './support/scene.ts';

// A real agent with the fast path under flows that are learned: it is killed, others change what it depends on.

const LIBERAL = 'net/netfilter/nf_conntrack_tcp_be_liberal';

for (const ruleMode of RULE_MODES) {
  test.serial(`an agent that is killed and started again goes on with the flows, ${ruleMode}`, async (t) => {
    t.timeout(180_000);
    await withFastTrial({ ruleMode }, async (scene) => {
      const { trial, programs, flows } = scene;
      const { netns } = trial.node;
      const isFollowed = await watchFollowed(t, scene);
      const before = await programFilters(netns);
      t.is(before.length, 8, 'two on each ENI and on each link of a Pod');
      for (let round = 0; round < 3; round++) {
        await trial.killAgent();
        await isFollowed('without an agent');
        await trial.startAgent();
        t.deepEqual(await programFilters(netns), before);
        t.regex(trial.agent.logs(), /"isReused":true,"msg":"fast path"/);
        await isFollowed('with the next agent');
        await flows.learned(programs);
      }
      t.deepEqual(await flows.finish(), []);
      t.deepEqual(await trial.vpc.droppedPackets(), []);
      await trial.settle('after three agents');
    });
  });
}

/** Makes an assertion: of the packets of all learned flows only some take the slow way. */
async function watchFollowed(
  t: ExecutionContext,
  { trial, pods }: FastTrial,
): Promise<(what: string) => Promise<void>> {
  const slow = await watchForward(trial.node.netns);
  const arrived = await watchInput(pods[1].netns, FIRST_PORT.udp + 2);
  return async (what) => {
    const before = await arrived();
    const counted = await countedSince(slow, 2_000);
    const all = (await arrived()) - before;
    // Twelve directions, each of which has one packet a second on the slow way. Those that arrived are of one direction.
    t.log(`figure: ${what}, ${counted} packets of 12 directions took the slow way while ${all} of one of them arrived`);
    t.true(counted < all, `${what}: ${counted}, ${all}`);
  };
}

test.serial('a setting that the fast path needs is set back, and a fast TCP stream goes on', async (t) => {
  t.timeout(180_000);
  await withFastTrial({}, async ({ trial, pods, flows }) => {
    const { netns } = trial.node;
    // As kube-proxy has it where the setting is off at its start.
    await netns.run(['iptables', '-w', '-A', 'FORWARD', '-m', 'conntrack', '--ctstate', 'INVALID', '-j', 'DROP']);
    // 8 MB a second: in a second, the time between two packets that connection tracking sees, far beyond its window.
    const stream = await startTcpStream(pods[0], trial.vpc.outside, 7999, { numberBytes: 16_384 });
    try {
      await sleep(3_000);
      for (let round = 0; round < 3; round++) {
        await netns.sysctl({ [LIBERAL]: 0 });
        const startedMs = performance.now();
        const isBack = async () => (await netns.run(['cat', `/proc/sys/${LIBERAL}`])).trim() === '1';
        await waitUntil(isBack, { what: 'the setting to be set back', everyMs: 20 });
        t.log(`figure: ${LIBERAL} was set back after ${(performance.now() - startedMs).toFixed(0)} ms`);
        await sleep(1_500);
      }
      t.deepEqual(await stream.finish(), []);
      t.deepEqual(await flows.finish(), []);
    } finally {
      await stream.close();
    }
  });
});

test.serial('a change of the rule mode and back loses no packet of a learned flow', async (t) => {
  t.timeout(180_000);
  await withFastTrial({}, async (scene) => {
    const { trial, programs, flows } = scene;
    const isFollowed = await watchFollowed(t, scene);
    for (const ruleMode of ['per-pod', 'compact'] as const) {
      await trial.agent.stop();
      trial.ruleMode = ruleMode;
      await trial.startAgent();
      await trial.settle(`in ${ruleMode}`);
      await flows.learned(programs);
      await isFollowed(`in ${ruleMode}`);
    }
    t.deepEqual(await flows.finish(), []);
    t.deepEqual(await trial.vpc.droppedPackets(), []);
  });
});
