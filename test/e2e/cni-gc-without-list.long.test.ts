import { join } from 'node:path';
import test from 'ava';
import { readJournalFacts } from '../support/journal-facts.ts';
import { waitUntil } from '../support/wait-until.ts';
import { succeedSilently } from './support/cni-answers.ts';
import { openTrial } from './support/trial.ts';

/** A lease is collected a minute after its ADD at the earliest. */
const RELEASE_MS = 150_000;

test('GC: without a list the dead sandbox is released, and that alone', async (t) => {
  t.timeout(300_000);
  const trial = await openTrial({ ruleMode: 'compact', flags: { 'gc-interval': '2s' } });
  t.teardown(() => trial.close());
  const [dead, live, withoutDel] = [await trial.addPod(), await trial.addPod(), await trial.addPod()];
  // Gone by the runtime and by its namespace; the other still has its namespace, so its traffic may go on.
  trial.runtime.removeSandbox(dead.containerId);
  await dead.netns.close();
  trial.runtime.removeSandbox(withoutDel.containerId);
  const stop = new AbortController();
  const outside = trial.vpc.outside.ip;
  const pings = [live, withoutDel].map(async (pod) => {
    const answers: boolean[] = [];
    while (!stop.signal.aborted) answers.push(await pod.netns.ping(outside, { count: 10 }));
    return answers;
  });
  const conf = trial.node.conf({ cniVersion: '1.1.0' });
  succeedSilently(t, await trial.node.call('GC', undefined, { conf }));
  const leases = () => readJournalFacts(join(trial.agent.stateDir, 'journal.db')).leases;
  t.is(leases().length, 3);
  await waitUntil(() => !leases().some(({ containerId }) => containerId === dead.containerId), {
    ...{ what: 'the dead sandbox is released', timeoutMs: RELEASE_MS, everyMs: 500 },
    explain: () => trial.lastWords(),
  });
  succeedSilently(t, await trial.node.call('GC', undefined, { conf }));
  stop.abort();
  for (const answers of await Promise.all(pings)) t.false(answers.includes(false));
  const left = leases().map(({ containerId }) => containerId);
  t.deepEqual(left.sort(), [live.containerId, withoutDel.containerId].sort());
  t.deepEqual(await trial.node.tracesOf(dead.ip), []);
  t.is((await trial.node.hostVeths()).length, 2);
});
