import { readFileSync } from 'node:fs';
import test from 'ava';
import { type BenchRun, mergeResults, parseResults } from '../../bench/results.ts';
import { type BenchRow, benchRow } from '../../bench/row.ts';
import { chooseSuites, SUITES } from '../../bench/suites.ts';

const machine = { kernel: '6.1', cpu: 'a cpu', cores: 2, memoryGib: 4, node: 'v26.0.0', load: 0 };
const run = (commit: string): BenchRun => ({ machine, commit, date: '2026-01-01T00:00:00.000Z', seconds: 1 });
const row = (suite: string, ours: number): BenchRow =>
  benchRow({ suite, case: 'c', ours, peer: 1, peerName: 'p', unit: 'ms' });

test('mergeResults: a measured suite replaces its rows and its run, the others stay', (t) => {
  const earlier = { runs: { a: run('1'), b: run('1') }, rows: [row('a', 1), row('b', 1), row('gone', 1)] };
  const merged = mergeResults(earlier, [{ suite: 'b', run: run('2'), rows: [row('b', 2)] }], ['b', 'a']);
  t.deepEqual(merged, { runs: { b: run('2'), a: run('1') }, rows: [row('b', 2), row('a', 1), row('gone', 1)] });
});
test('parseResults: a file without runs is read', (t) => {
  t.deepEqual(parseResults(JSON.stringify({ machine, rows: [row('a', 1)] })), { runs: {}, rows: [row('a', 1)] });
});
test('chooseSuites: the default set, what is named, all', (t) => {
  t.false(chooseSuites([]).includes('scale'));
  t.true(chooseSuites([]).includes('netlink'));
  t.deepEqual(chooseSuites(['scale', 'cni']), ['cni', 'scale']);
  t.deepEqual(chooseSuites(['all']), Object.keys(SUITES));
  t.throws(() => chooseSuites(['cmi']), { instanceOf: RangeError, message: /no such suite: cmi; known are netlink,/ });
});
test('bench/results.json: every run has its commit and its date, and belongs to a suite', (t) => {
  const { runs, rows } = parseResults(readFileSync('bench/results.json', 'utf8'));
  t.true(rows.length > 0);
  for (const { suite, ratio } of rows) {
    t.true(Object.hasOwn(SUITES, suite), suite);
    t.true(Number.isFinite(ratio));
  }
  for (const [suite, { commit, date, machine: measured }] of Object.entries(runs)) {
    t.true(Object.hasOwn(SUITES, suite), suite);
    t.regex(commit, /^[0-9a-f]{40}(-dirty)?$/);
    t.is(new Date(date).toISOString(), date);
    t.true(measured.cores > 0 && measured.memoryGib > 0);
  }
});
