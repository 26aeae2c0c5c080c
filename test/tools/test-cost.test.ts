import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import test from 'ava';
import { childTicks, parseCosts, renderCosts } from '../../tools/test-cost.ts';

const cost = (name: string, wallSeconds: number, cpuSeconds: number) => ({
  file: `file:///repo/test/${name}.test.ts`,
  wallSeconds,
  cpuSeconds,
});

test('renderCosts: begins with the sum, then the file that took longest', (t) => {
  t.deepEqual(renderCosts([cost('quick', 1, 1), cost('slow', 20.04, 3)], 'file:///repo/'), [
    '   wall s   CPU s',
    '     21.0     4.0  all 2 files, one after the other',
    '     20.0     3.0  test/slow.test.ts',
    '      1.0     1.0  test/quick.test.ts',
  ]);
});

test('renderCosts: leaves out what is not among the ten dearest', (t) => {
  const many = Array.from({ length: 12 }, (_, index) => cost(`f${index}`, index + 1, 1));
  const lines = renderCosts(many, 'file:///repo/');
  t.is(lines.length, 12);
  t.true(lines[2]?.endsWith('test/f11.test.ts'));
  t.true(lines.at(-1)?.endsWith('test/f2.test.ts'));
});

test('renderCosts: says nothing of no file', (t) => {
  t.deepEqual(renderCosts([], 'file:///repo/'), []);
});

test('parseCosts: reads a document a line', (t) => {
  const one = cost('one', 1, 2);
  t.deepEqual(parseCosts(`${JSON.stringify(one)}\n${JSON.stringify(one)}\n`), [one, one]);
  t.deepEqual(parseCosts(''), []);
});

test('childTicks: counts behind a name with blanks and brackets', (t) => {
  const stat = '7 (a) b) c) S 1 7 7 0 -1 4194560 10 20 0 0 5 6 700 80 20 0 1 0 100 0 0';
  t.is(childTicks(stat), 780);
});

test('childTicks: grows by what a child of this process burns', (t) => {
  const read = () => childTicks(readFileSync('/proc/self/stat', 'utf8'));
  const before = read();
  spawnSync(process.execPath, [
    '-e',
    'const end = process.cpuUsage().user + 3e5; while (process.cpuUsage().user < end);',
  ]);
  t.true(read() - before >= 30, 'three tenths of a second are thirty ticks');
});
