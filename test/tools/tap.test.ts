import test from 'ava';
import { parseFigure, parseTapLine } from '../../tools/tap.ts';

const reads = test.macro((t, line: string, wanted: ReturnType<typeof parseTapLine>) => {
  t.deepEqual(parseTapLine(line), wanted);
});

test('parseTapLine: counts a pass', reads, 'ok 1 - rule › adds', { kind: 'passed', title: 'rule › adds' });
test('parseTapLine: counts a failure', reads, 'not ok 12 - rule', { kind: 'failed', title: 'rule' });
test('parseTapLine: counts a skip as a skip', reads, 'ok 3 - vlan # SKIP', { kind: 'skipped', title: 'vlan' });
test('parseTapLine: a to-do is not a pass', reads, 'not ok 3 - vlan # TODO', { kind: 'skipped', title: 'vlan' });
test('parseTapLine: leaves the plan alone', reads, '1..3', undefined);
test('parseTapLine: leaves details alone', reads, '    values:', undefined);

test('parseFigure: reads what a test logged as one, and nothing else', (t) => {
  t.is(parseFigure('#   figure: 3 of 4 points'), 'figure: 3 of 4 points');
  t.is(parseFigure('#   no figure: 3'), undefined);
  t.is(parseFigure('# figure: the title of a test'), undefined);
});
