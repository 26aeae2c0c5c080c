import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type Mutation, plant, runNode, verdictOf } from '../../tools/plant-faults.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const MUTATIONS: readonly Mutation[] = JSON.parse(readFileSync(join(ROOT, 'tools/mutations.json'), 'utf8'));
const ONE: Mutation = { name: 'one', file: 'a.ts', text: 'x + 1', instead: 'x', run: '--story=storm' };

test('plant: changes the text that is there once, and nothing else', (t) => {
  t.is(plant('const y = x + 1;\n', ONE), 'const y = x;\n');
  t.throws(() => plant('const y = x + 1 + x + 1;', ONE), { message: /^one: its text is 2 times in a\.ts$/ });
  t.throws(() => plant('', ONE), { message: /0 times/ });
});

test('tools/mutations.json: each fault can be planted, and changes its file', (t) => {
  t.true(MUTATIONS.length > 5);
  for (const mutation of MUTATIONS) {
    const content = readFileSync(join(ROOT, mutation.file), 'utf8');
    t.not(plant(content, mutation), content, mutation.name);
  }
});

test('runNode: a run that does not end is ended, and found nothing', (t) => {
  const endless = runNode(ROOT, ['-e', 'setInterval(() => {}, 1_000)'], 500);
  t.is(endless.end, 'timed out');
  t.true(endless.tookMs < 10_000);
  t.is(verdictOf(endless, { hash: '' }), 'timed out');
});

test('verdictOf: a run that fails found the fault, one that is well did not', (t) => {
  const failed = runNode(ROOT, ['-e', 'process.exit(1)'], 60_000);
  t.is(verdictOf(failed, { hash: 'a' }), 'found');
  const well = runNode(ROOT, ['-e', ''], 60_000);
  t.is(verdictOf(well, { hash: '' }), 'not found');
  t.is(verdictOf({ ...well, hash: 'a' }, { hash: 'a' }), 'not reached');
  t.is(verdictOf({ ...well, hash: 'b' }, { hash: 'a' }), 'not found');
});
