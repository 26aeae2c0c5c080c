import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { createDatabase } from '../../../agent/journal/journal-file.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleLease } from '../pool/supply-sample.ts';
import { open } from './journal-fixture.ts';

const LEASE = sampleLease('one', 'eni-a', ['10.0.0.5']);

function newPath(t: { teardown(run: () => void): void }): string {
  const folder = createTempDir('journal');
  t.teardown(() => folder.close());
  return folder.join('journal.db');
}

test('needsAdoption: a file of a release that did not record it is adopted', (t) => {
  const path = newPath(t);
  open(path).close();
  {
    using database = new DatabaseSync(path);
    database.exec("DELETE FROM meta WHERE name = 'adoption'");
  }
  using again = open(path);
  t.false(again.needsAdoption);
});

test('verify: a file that is written again from memory is adopted when its predecessor was', (t) => {
  const path = newPath(t);
  {
    using journal = open(path);
    journal.markAdopted();
    journal.putLease(LEASE);
    rmSync(path);
    t.is(journal.verify(), 'rebuilt');
  }
  using again = open(path);
  t.false(again.needsAdoption);
  t.deepEqual(again.load().leases, [LEASE]);
});

test('createDatabase: a file that is complete but for its content asks for adoption', (t) => {
  const path = newPath(t);
  // As a kill leaves it between the rename and the transaction that writes what the memory held.
  createDatabase(path, 'boot-1');
  using journal = open(path);
  t.is(journal.origin, 'existing');
  t.true(journal.needsAdoption);
});
