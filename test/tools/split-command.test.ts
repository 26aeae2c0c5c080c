import { globSync } from 'node:fs';
import test from 'ava';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { filesOf, splitCommand } from '../../tools/split-command.ts';

const COMMAND = [
  'ava',
  '--tap',
  'test/{tools,docs}/**/*.test.ts',
  'test/runtime/clock.test.ts',
  '!test/tools/image/**',
];

test('splitCommand: its commands run each file once, with the flags of the whole', (t) => {
  const commands = splitCommand(COMMAND, seededRandom(1));
  t.true(commands.length > 1);
  for (const command of commands) t.deepEqual(command.slice(0, 2), ['ava', '--tap']);
  const wanted = globSync(['test/{tools,docs}/**/*.test.ts', 'test/runtime/clock.test.ts']);
  const expected = wanted.filter((file) => !file.startsWith('test/tools/image/')).sort();
  t.deepEqual(commands.flatMap(filesOf).sort(), expected);
});

test('splitCommand: the order is drawn', (t) => {
  const order = (seed: number) => splitCommand(COMMAND, seededRandom(seed)).flatMap(filesOf);
  t.deepEqual(order(1), order(1));
  t.notDeepEqual(order(1), order(2));
});
