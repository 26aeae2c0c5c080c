import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { withLock } from '../../../tools/build/lock.ts';
import { createTempDir } from '../../support/temp-dir.ts';

function lockIn(t: ExecutionContext): string {
  const dir = createTempDir('lock');
  t.teardown(() => dir.close());
  return dir.join('cache', 'lock');
}

/** Starts a process that takes the lock and keeps it. */
async function startHolder(path: string): Promise<{ kill(): Promise<void> }> {
  const module = join(import.meta.dirname, '../../../tools/build/lock.ts');
  const script = `import { withLock } from ${JSON.stringify(module)};
    await withLock(${JSON.stringify(path)}, async () => { console.log('held'); await new Promise((r) => setTimeout(r, 60_000)); });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return {
    kill: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

test('withLock: runs one job at a time', async (t) => {
  const path = lockIn(t);
  let running = 0;
  const job = async (): Promise<number> => {
    running++;
    await sleep(20);
    return running--;
  };
  t.deepEqual(await Promise.all([1, 2, 3].map(() => withLock(path, job))), [1, 1, 1]);
});

test('withLock: waits for another process, and goes on when that was killed', async (t) => {
  const path = lockIn(t);
  const holder = await startHolder(path);
  let isHeld = true;
  const waiting = Promise.all([1, 2].map(() => withLock(path, async () => isHeld)));
  await sleep(300);
  isHeld = false;
  await holder.kill();
  t.deepEqual(await waiting, [false, false]);
});

test('withLock: is not stopped by a file that a killed process left empty', async (t) => {
  const path = lockIn(t);
  await withLock(path, async () => {});
  writeFileSync(path, '');
  t.is(await Promise.race([withLock(path, async () => 'got it'), sleep(30_000, 'waits', { ref: false })]), 'got it');
});

test('withLock: lets go when the job fails', async (t) => {
  const path = lockIn(t);
  await t.throwsAsync(
    withLock(path, () => Promise.reject(new Error('no'))),
    { message: 'no' },
  );
  t.is(await withLock(path, async () => 1), 1);
});
