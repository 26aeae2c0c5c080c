import test from 'ava';
import { startAgent } from '../support/agent-process.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openTrial } from './support/trial.ts';
import { watchNode } from './support/watch-node.ts';

test('agent: a second one on the same node says so and ends; the first goes on', async (t) => {
  t.timeout(60_000);
  const trial = await openTrial({ ruleMode: 'compact' });
  try {
    const pod = await trial.addPod();
    const first = trial.agent;
    const watch = await watchNode(trial.node.netns);
    const second = await startAgent({
      netns: trial.node.netns,
      dir: trial.node.dir,
      until: 'started',
      flags: { 'rule-mode': 'compact', 'metrics-address': '' },
    });
    try {
      await waitUntil(() => !second.child.isRunning, { what: 'the end of the second agent', explain: second.logs });
      t.is((await second.child.exited).code, 1);
      t.regex(second.logs(), /agent\.sock.*another agent|another agent.*agent\.sock/s);
    } finally {
      await second.stop();
    }
    t.true(first.child.isRunning);
    t.like(await watch.end(), { deletions: [], changes: [], nft: [] });
    t.true(await pod.netns.ping(trial.vpc.outside.ip));
    await trial.delete(pod);
    await trial.settle('after the DEL by the first agent');
  } finally {
    await trial.close();
  }
});
