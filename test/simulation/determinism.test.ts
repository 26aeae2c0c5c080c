import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { storm } from './stories/storm.ts';
import { play } from './story.ts';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

test('one seed is one run, in every process, and another seed another', async (t) => {
  const args = [MAIN, '--story=storm', '--seed=7'];
  const [, there] = /"hash":"([0-9a-f]+)"/.exec(execFileSync(process.execPath, args, { encoding: 'utf8' })) ?? [];
  t.is((await play(storm, { seed: 7 })).hash, there ?? '');
  t.not((await play(storm, { seed: 8 })).hash, there ?? '');
});
