import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { sharingFork } from '../../tools/share-processes.ts';

const WORKER = fileURLToPath(new URL('test-worker.ts', import.meta.url));

type Said = { readonly ava: { readonly type: string; readonly pid?: number } };

/** Runs a file as AVA does, to the end of what it takes for its process. Returns the id of the process that ran it. */
async function runFile(begin: typeof fork, file: string): Promise<number | undefined> {
  const child = begin(WORKER, [], { silent: true, serialization: 'advanced' });
  let pid: number | undefined;
  child.on('message', ({ ava }: Said) => {
    if (ava.type === 'ready-for-options') child.send({ ava: { type: 'options', options: { file } } });
    else pid = ava.pid;
  });
  await new Promise((resolve) => child.on('exit', resolve));
  return pid;
}

test('sharingFork: a file runs in the process of one that is over, and never after one that failed or left something', async (t) => {
  const begin = sharingFork(fork);
  const pids: (number | undefined)[] = [];
  for (const file of ['first', 'second', 'unclean', 'fails', 'last']) pids.push(await runFile(begin, file));
  const [first, second, unclean, fails, last] = pids;
  t.is(second, first);
  t.is(unclean, first);
  t.is(new Set([first, fails, last]).size, 3);
});

test('sharingFork: two files at once have two processes', async (t) => {
  const begin = sharingFork(fork);
  const [a, b] = await Promise.all([runFile(begin, 'a'), runFile(begin, 'b')]);
  t.not(a, b);
});
