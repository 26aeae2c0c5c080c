import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type Mutation, plant } from '../../tools/plant-faults.ts';

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
