import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { buildExecutables } from '../../tools/build.ts';
import { waitUntil } from '../support/wait-until.ts';
import { placeOf } from './support/fault-trial.ts';
import { runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// In the place of each file that agent and tke-eni read stands what blocks its reader. Links and devices:
// test/agent/journal/journal-damage.test.ts, test/runtime/read-regular-file.test.ts.

let trial: Trial;
let pod: AttachedPod;

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
  trial = await openTrial({ ruleMode: 'compact' });
  pod = await trial.addPod();
});
test.after.always(() => trial?.close());

const KINDS: Readonly<Record<string, (path: string) => void>> = {
  FIFOs: (path) => void execFileSync('mkfifo', [path]),
  files: (path) => writeFileSync(path, 'of another program', { mode: 0o000 }),
  'links that lead nowhere': (path) => symlinkSync('/none/at/all', path),
  folders: (path) => void mkdirSync(join(path, 'deeper'), { recursive: true }),
};

for (const [kind, make] of Object.entries(KINDS)) {
  test.serial(
    `agent and tke-eni: answer when ${kind} stand in the place of the files of the state folder`,
    async (t) => {
      t.timeout(120_000);
      await trial.killAgent();
      const { stateDir, cniConfDir, socketPath } = trial.agent;
      const names = ['journal.db', 'journal.db-journal', 'journal.db.new', 'found.json', 'node.json'];
      for (const path of [...names.map((name) => join(stateDir, name)), join(dirname(socketPath), 'deletions')]) {
        rmSync(path, { force: true, recursive: true });
        make(path);
      }
      const foreign = join(cniConfDir, '99-foreign.conf');
      mkdirSync(cniConfDir, { recursive: true });
      make(foreign);
      t.teardown(() => rmSync(foreign, { force: true, recursive: true }));
      for (const line of ['status', 'doctor', `explain ${pod.ip}`, 'diff', 'events']) {
        const { code, stderr } = await runCli(placeOf(trial), ...line.split(' '));
        t.not(code, null, `${line}: ${stderr}`);
        t.false(stderr.includes('internal error'), `${line}: ${stderr}`);
      }
      await trial.startAgent();
      await waitUntil(() => pod.netns.ping(trial.vpc.outside.ip), { what: 'packets of the Pod' });
      const fresh = await trial.addPod();
      t.not(fresh.ip, pod.ip);
      t.true(await fresh.netns.ping(trial.vpc.outside.ip));
      await trial.delete(fresh);
    },
  );
}
