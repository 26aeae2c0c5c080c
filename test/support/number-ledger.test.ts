import test from 'ava';
import { NumberLedger } from './number-ledger.ts';

function reportOf(numbers: readonly number[]) {
  const ledger = new NumberLedger();
  for (const [index, number] of numbers.entries()) ledger.note(number, index);
  return ledger.report();
}

test('NumberLedger: reports nothing wrong when every number arrives once and in order', (t) => {
  const report = reportOf([0, 1, 2, 3]);
  t.like(report, { received: 4, duplicates: 0, reordered: 0, missing: 0, highest: 3 });
  t.deepEqual(report.gaps, []);
});

test('NumberLedger: names the gaps when numbers are missing', (t) => {
  const report = reportOf([1, 2, 5, 9]);
  t.is(report.missing, 6);
  t.deepEqual(report.gaps, [
    [0, 0],
    [3, 4],
    [6, 8],
  ]);
});

test('NumberLedger: tells a doubled number from a late one', (t) => {
  t.like(reportOf([0, 2, 1, 2, 3]), { received: 4, duplicates: 1, reordered: 1, missing: 0 });
});

test('NumberLedger: keeps numbers beyond its first size', (t) => {
  t.like(reportOf([0, 1_000_000]), { received: 2, missing: 999_999 });
});
