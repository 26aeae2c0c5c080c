import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import test from 'ava';
import { EX_CONFIG } from '../../../runtime/settings/read-settings.ts';
import { Child } from '../../../sim/support/child.ts';
import { partOf } from '../../support/suite-part.ts';
import { createTempDir } from '../../support/temp-dir.ts';

// A file that people name, with what blocks its reader in its place: the process must end with the reason.

const PROGRAMS = {
  'agent --config': ['agent/main.ts', '--config'],
  'agent uninstall --config': ['agent/main.ts', 'uninstall', '--config'],
  'ipamd --config': ['ipamd/main.ts', '--config'],
  'scheduler --config': ['scheduler/main.ts', '--config'],
  'webhook --config': ['webhook/main.ts', '--config'],
  'tke-eni cluster --kubeconfig': ['cli/main.ts', 'cluster', '--kubeconfig'],
} as const;

/** A process of sources that starts takes seconds on a busy machine. */
const START_MS = 60_000;

for (const [title, args] of partOf(Object.entries(PROGRAMS), ([one]) => /^(agent|tke-eni)/.test(one))) {
  test(`${title}: a FIFO in the place of the file is refused at once`, async (t) => {
    t.timeout(2 * START_MS);
    const dir = createTempDir('blocking');
    t.teardown(dir.close);
    execFileSync('mkfifo', [dir.join('fifo')]);
    symlinkSync('fifo', dir.join('file'));
    const child = new Child([process.execPath, ...args, dir.join('file')]);
    const timer = setTimeout(() => child.kill('SIGKILL'), START_MS);
    t.teardown(() => clearTimeout(timer));
    const { code, signal } = await child.exited;
    const output = child.stdout + child.stderr;
    t.is(signal, null, output);
    if (title.startsWith('tke-eni')) t.not(code, 0);
    else t.is(code, EX_CONFIG, output);
    t.regex(output, /file is a FIFO, not a regular file/);
  });
}
