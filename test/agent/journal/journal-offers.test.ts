import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import type { Offer } from '../../../agent/journal/journal-content.ts';
import { readJournal } from '../../../agent/journal/read-journal.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleLease } from '../pool/supply-sample.ts';
import { open } from './journal-fixture.ts';

const offerOf = (ip: string): Offer => ({ ip, family: 4, eniId: 'eni-a', assignmentId: `as-${ip}` });
const TWO = [offerOf('10.0.0.1'), offerOf('10.0.0.2')];

test('journal: writes offers again when its file was deleted', (t) => {
  const folder = createTempDir('offers');
  t.teardown(() => folder.close());
  const path = folder.join('journal.db');
  using journal = open(path);
  journal.putOffers(TWO);
  folder.close();
  t.is(journal.verify(), 'rebuilt');
  t.deepEqual(readJournal(path).offers, TWO);
});

test('openJournal: reads a journal from before there were offers, and takes some', (t) => {
  const folder = createTempDir('offers');
  t.teardown(() => folder.close());
  const path = folder.join('journal.db');
  const lease = sampleLease('one', 'eni-a', ['10.0.0.5']);
  {
    using journal = open(path);
    journal.putLease(lease);
  }
  {
    using database = new DatabaseSync(path);
    database.exec('PRAGMA journal_mode = persist; DROP TABLE offer; PRAGMA user_version = 1');
  }
  t.deepEqual(readJournal(path).leases, [lease]);
  {
    using journal = open(path);
    t.is(journal.origin, 'existing');
    t.deepEqual(journal.load().leases, [lease]);
    journal.putOffers(TWO);
  }
  using again = open(path);
  t.is(again.origin, 'existing');
  t.deepEqual(again.load().offers, TWO);
});
