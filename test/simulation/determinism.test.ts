import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

function hashOf(seed: number): string | undefined {
  const text = execFileSync(process.execPath, [MAIN, '--story=storm', `--seed=${seed}`], { encoding: 'utf8' });
  return /"hash":"([0-9a-f]+)"/.exec(text)?.[1];
}

test('one seed is one run, in every process, and another seed another', (t) => {
  const first = hashOf(7);
  t.truthy(first);
  t.is(hashOf(7), first);
  t.not(hashOf(8), first);
});
