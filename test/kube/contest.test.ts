import test from 'ava';
import { Contests } from '../../kube/contest.ts';

const MINUTE_MS = 60_000;
const at = (resourceVersion: number, uid = 'uid-1') => ({ uid, resourceVersion: String(resourceVersion) });

/** Another client undoes each write at once; returns when it was written, milliseconds. */
function fight(
  contests: Contests,
  untilMs: number,
): { readonly writesMs: readonly number[]; readonly reports: number } {
  const writesMs: number[] = [];
  let [version, reports] = [1, 0];
  for (let nowMs = 0; nowMs < untilMs; nowMs += 100) {
    const { waitMs, isNew } = contests.ask('field', true, at(version), nowMs);
    reports += isNew ? 1 : 0;
    if (waitMs > 0) continue;
    contests.note('field', 'ours', at(version + 1), nowMs);
    version += 2;
    writesMs.push(nowMs);
  }
  return { writesMs, reports };
}

test('a field that is changed back each time is written at most once a minute, and reported once', (t) => {
  const { writesMs, reports } = fight(new Contests(), 10 * MINUTE_MS);
  t.true(writesMs.length >= 10 && writesMs.length <= 20, `${writesMs.length}`);
  t.is(reports, 1);
  const gaps = writesMs.slice(1).map((ms, index) => ms - (writesMs[index] ?? 0));
  t.deepEqual(
    gaps.slice(-3).map((gap) => gap >= MINUTE_MS),
    [true, true, true],
  );
});

test('a contest is over when nothing was undone for some minutes', (t) => {
  const contests = new Contests();
  fight(contests, 2 * MINUTE_MS);
  t.true(contests.isContested('field', 2 * MINUTE_MS));
  const laterMs = 20 * MINUTE_MS;
  t.false(contests.isContested('field', laterMs));
  t.is(contests.ask('field', true, at(9_999), laterMs).waitMs, 0);
});

test('a write that is undone counts once, however often writing again fails', (t) => {
  const contests = new Contests();
  contests.note('field', 'ours', at(10), 0);
  for (let nowMs = 1; nowMs <= 20; nowMs += 1)
    t.deepEqual(contests.ask('field', true, at(11), nowMs), { waitMs: 0, isNew: false });
  t.false(contests.isContested('field', 20));
});

test('a write that was late is not followed by another at once', (t) => {
  const contests = new Contests();
  fight(contests, 2 * MINUTE_MS);
  t.is(contests.ask('field', true, at(9_999), 4 * MINUTE_MS).waitMs, 0, 'this write fails');
  t.is(contests.ask('field', true, at(9_999), 5 * MINUTE_MS).waitMs, 0, 'and this one comes about');
  contests.note('field', 'ours', at(10_000), 5 * MINUTE_MS);
  t.true(contests.ask('field', true, at(10_001), 5 * MINUTE_MS + 1).waitMs > 0);
});

test('what is no contest is written at once', (t) => {
  const contests = new Contests();
  for (let index = 0; index < 20; index += 1) {
    t.is(contests.ask('field', false, at(2 * index), index).waitMs, 0, 'it has what was written, and that changes');
    contests.note('field', `value ${index}`, at(2 * index + 1), index);
  }
  t.is(contests.ask('field', true, at(1, 'uid-2'), 30).waitMs, 0, 'another object of the name');
  t.is(contests.ask('other', true, at(100), 30).waitMs, 0, 'another field');
});

test('a cache that is behind the own write is waited for, with a limit', (t) => {
  const contests = new Contests();
  contests.note('field', 'ours', at(10), 0);
  t.true(contests.ask('field', true, at(9), 1).waitMs > 0);
  t.is(contests.ask('field', true, at(9), 2 * MINUTE_MS).waitMs, 0, 'a restored etcd');
});

test('fields that were not written for some minutes are forgotten', (t) => {
  const contests = new Contests();
  contests.note('old', 'ours', at(10), 0);
  contests.note('new', 'ours', at(11), 20 * MINUTE_MS);
  t.is(contests.ask('old', true, at(9), 20 * MINUTE_MS).waitMs, 0);
});
