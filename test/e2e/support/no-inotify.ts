import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { readJournalFacts } from '../../support/journal-facts.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { openTrial } from './trial.ts';

/**
 * Starts an agent whose kernel refuses a call of inotify(7) by an error, and checks that it serves, stays, and finds by polling
 * what it otherwise is notified of: stored DELs, a changed supply, a file in the place of the spool folder.
 */
export async function checkWithoutInotify(t: ExecutionContext, call: string, error: string): Promise<void> {
  const trial = await openTrial({ ruleMode: 'compact' });
  t.teardown(() => trial.close());
  const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${error}`];
  // -D: the process that is started is the agent, and the tracer its grandchild.
  const wrap = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', ...inject];
  await trial.killAgent();
  await trial.startAgent({ wrap });
  const pod = await trial.addPod();
  await trial.killAgent();
  t.is((await trial.tryDelete(pod)).exitCode, 0);
  await trial.startAgent({ wrap });
  const leases = () => readJournalFacts(join(trial.agent.stateDir, 'journal.db')).leases.length;
  await waitUntil(() => leases() === 0, {
    what: 'the stored DEL',
    timeoutMs: 20_000,
    explain: () => trial.lastWords(),
  });
  const spool = join(dirname(trial.agent.socketPath), 'deletions');
  rmSync(spool, { recursive: true });
  writeFileSync(spool, 'in the way');
  await trial.vpc.assignIps('eni-1', 3);
  trial.writeSupply();
  const says = (text: RegExp) =>
    waitUntil(() => text.test(trial.agent.logs()), {
      what: String(text),
      timeoutMs: 20_000,
      explain: () => trial.lastWords(),
    });
  await says(/"added":3/);
  await says(/moved aside/);
  await trial.settle('without inotify');
  t.true(trial.agent.child.isRunning);
}
