import { fileURLToPath } from 'node:url';
import test from 'ava';
import { NetnsView } from '../../sim/support/netns.ts';
import { run, tryRun } from '../../sim/support/run.ts';
import { cleanupStale, deleteNetnsNames, listNetnsNames, reservePrefix } from '../../sim/support/run-names.ts';
import { waitUntil } from '../support/wait-until.ts';

const RUN_NAMES = fileURLToPath(new URL('../../sim/support/run-names.ts', import.meta.url));

async function addNetns(name: string): Promise<void> {
  await run(['ip', 'netns', 'add', name]);
}

test('cleanupStale: removes what a killed run left behind and nothing of a living one', async (t) => {
  const stem = 'tke-test-stale-';
  const crash = `import { reservePrefix } from '${RUN_NAMES}';
    process.stdout.write(reservePrefix('${stem}').prefix, () => process.kill(process.pid, 'SIGKILL'));`;
  const crashed = await tryRun([process.execPath, '--input-type=module', '-e', crash]);
  t.is(crashed.signal, 'SIGKILL');
  const living = reservePrefix(stem);
  const names = [`${crashed.stdout}router`, `${living.prefix}router`, `${stem}without-note`] as const;
  try {
    for (const name of names) await addNetns(name);
    const sleeper = new NetnsView(names[0]).start(['sh', '-c', 'echo in; exec sleep 60']);
    await waitUntil(() => sleeper.stdout === 'in\n', { what: 'a process in the namespace' });
    t.deepEqual(await cleanupStale(stem), [names[0]]);
    t.is((await sleeper.exited).signal, 'SIGKILL', 'what still ran in it is ended too');
    const left = await listNetnsNames();
    t.deepEqual(
      names.map((name) => left.includes(name)),
      [false, true, true],
    );
  } finally {
    living.release();
    await deleteNetnsNames(names);
  }
});
