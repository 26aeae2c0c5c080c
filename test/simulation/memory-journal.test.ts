import test from 'ava';
import { cooldownsOf, keyOf, NOW_MS } from '../agent/journal/journal-fixture.ts';
import { sampleLease } from '../agent/pool/supply-sample.ts';
import { JournalPlace } from './memory-journal.ts';

// What it shares with the journal in a file: test/agent/journal/journal-contract.test.ts.

const CLOCK = { bootMs: () => NOW_MS };
const LEASE = sampleLease('one', 'eni-a', ['10.0.0.5']);

test('JournalPlace: one agent has it at a time; one that was killed has it no more', (t) => {
  const place = new JournalPlace();
  const first = place.open('boot-1', CLOCK);
  first.putLease(LEASE);
  t.throws(() => place.open('boot-1', CLOCK), { code: 'JOURNAL_LOCKED' });
  place.release();
  const second = place.open('boot-1', CLOCK);
  t.deepEqual(second.load().leases, [LEASE]);
  t.throws(() => first.markReleasing(keyOf(LEASE)), { code: 'JOURNAL_BROKEN' });
  first.close();
  t.is(second.verify(), 'intact', 'what the dead one does changes nothing');
  t.is(second.load().leases[0]?.state, 'pending');
});

test('JournalPlace: what is lost or damaged while an agent runs is written again, else it is gone', (t) => {
  const place = new JournalPlace();
  const journal = place.open('boot-1', CLOCK);
  journal.markAdopted();
  for (const harm of ['lose', 'damage'] as const) {
    place[harm]();
    t.is(journal.verify(), 'rebuilt');
    t.is(journal.verify(), 'intact');
  }
  journal.putLease(LEASE);
  journal.close();
  place.damage();
  const next = place.open('boot-1', CLOCK);
  t.is(next.origin, 'replaced-damaged');
  t.true(next.needsAdoption);
  t.deepEqual(next.load().leases, []);
  next.close();
  place.lose();
  t.is(place.open('boot-1', CLOCK).origin, 'fresh');
});

test('JournalPlace: while no space is left nothing begins, and what has begun can end', (t) => {
  const place = new JournalPlace();
  const journal = place.open('boot-1', CLOCK);
  journal.putLease(LEASE);
  place.isFull = true;
  t.throws(() => journal.putLease(sampleLease('two', 'eni-a', ['10.0.0.6'])), { code: 'JOURNAL_FULL' });
  t.throws(() => journal.putRuleMode('compact'), { code: 'JOURNAL_FULL' });
  journal.activateLease(keyOf(LEASE), {});
  t.true(journal.markReleasing(keyOf(LEASE)));
  t.true(journal.eraseLease(keyOf(LEASE), cooldownsOf(LEASE)));
  t.like(journal.load(), { leases: [], cooldowns: cooldownsOf(LEASE), ruleMode: undefined });
});
