import { mkdirSync, readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';
import { cooldownsOf, keyOf, open } from './journal-fixture.ts';

const LEASE = sampleLease('one', 'eni-a', ['10.0.0.5']);
const ERASED = sampleLease('two', 'eni-a', ['10.0.0.6']);

function filledJournal(t: { teardown(run: () => void): void }): string {
  const folder = createTempDir('journal');
  t.teardown(() => folder.close());
  const path = folder.join('journal.db');
  using journal = open(path);
  journal.putLease(LEASE);
  journal.putLease(ERASED);
  journal.eraseLease(keyOf(ERASED), cooldownsOf(ERASED));
  journal.putEni({ eniId: 'eni-a', mac: '02:00:00:00:00:01', table: 4007, slot: 1 });
  journal.putSupply(sampleSupply([sampleEni('eni-a', ['10.0.0.5', '10.0.0.6'])]));
  return path;
}

function withDatabase(path: string, sql: string): void {
  using database = new DatabaseSync(path);
  database.exec(sql);
}

/** Ways in which a file can be spoilt while no agent runs. */
const DAMAGE: Readonly<Record<string, (path: string) => void>> = {
  'is empty': (path) => truncateSync(path, 0),
  'is cut in its first page': (path) => truncateSync(path, 100),
  'is cut in the middle': (path) => truncateSync(path, 5 * 4096),
  'is garbage': (path) => writeFileSync(path, 'x'.repeat(20_000)),
  'is another SQLite database': (path) => {
    rmSync(path);
    withDatabase(path, 'CREATE TABLE t (a)');
  },
  'has another schema version': (path) => withDatabase(path, 'PRAGMA user_version = 99'),
  'has a row that is no JSON': (path) => withDatabase(path, `UPDATE lease SET body = '{'`),
  'has a row that is no lease': (path) => withDatabase(path, `UPDATE lease SET body = '{}'`),
  'has an unknown rule mode': (path) => withDatabase(path, `INSERT INTO meta VALUES ('ruleMode', 'both')`),
  'disagrees with itself about an owner': (path) => withDatabase(path, 'DELETE FROM lease_address'),
  'misses a table': (path) => withDatabase(path, 'DROP TABLE eni'),
  'is a folder': (path) => {
    rmSync(path);
    mkdirSync(path);
  },
};

for (const [what, damage] of Object.entries(DAMAGE)) {
  test(`openJournal: starts anew and keeps the old file aside when it ${what}`, (t) => {
    const path = filledJournal(t);
    damage(path);
    {
      using journal = open(path);
      t.is(journal.origin, 'replaced-damaged');
      t.is(journal.movedTo, `${path}.damaged-1`);
      t.deepEqual(journal.load(), { leases: [], cooldowns: [], enis: [] });
      journal.putLease(LEASE);
    }
    t.true(readdirSync(dirname(path)).includes('journal.db.damaged-1'));
    using again = open(path);
    t.is(again.origin, 'existing');
    t.deepEqual(again.load().leases, [LEASE]);
  });
}

test('openJournal: keeps the last three damaged files', (t) => {
  const path = filledJournal(t);
  for (let round = 0; round < 5; round++) {
    writeFileSync(path, `garbage ${round}`);
    open(path).close();
  }
  const kept = readdirSync(dirname(path)).filter((name) => /damaged-\d+$/.test(name));
  t.deepEqual(kept.sort(), ['journal.db.damaged-3', 'journal.db.damaged-4', 'journal.db.damaged-5']);
});

test('openJournal: removes a file that a crash left half made', (t) => {
  const path = filledJournal(t);
  rmSync(path);
  writeFileSync(`${path}.new`, 'half');
  using journal = open(path);
  t.is(journal.origin, 'fresh');
  t.false(readdirSync(dirname(path)).includes('journal.db.new'));
});

/** Ways in which a file can be spoilt under a running agent. */
const LOSS: Readonly<Record<string, (path: string) => void>> = {
  'was deleted': (path) => rmSync(path),
  'was deleted with its whole folder': (path) => rmSync(dirname(path), { recursive: true }),
  'lost its rollback journal': (path) => rmSync(`${path}-journal`),
  'was moved away': (path) => renameSync(path, `${path}.moved`),
  'was replaced by another file': (path) => {
    rmSync(path);
    writeFileSync(path, 'somebody else');
  },
  'was cut': (path) => truncateSync(path, 4096),
  'was emptied': (path) => truncateSync(path, 0),
};

for (const [what, lose] of Object.entries(LOSS)) {
  test(`journal: writes itself anew from memory when its open file ${what}`, (t) => {
    const path = filledJournal(t);
    const before = (() => {
      using journal = open(path);
      const content = journal.load();
      lose(path);
      journal.putRuleMode('compact');
      t.is(journal.verify(), 'intact');
      return content;
    })();
    using again = open(path);
    t.is(again.origin, 'existing');
    t.deepEqual(again.load(), { ...before, ruleMode: 'compact' });
  });
}

test('verify: notices a lost file without a write', (t) => {
  const path = filledJournal(t);
  using journal = open(path);
  t.is(journal.verify(), 'intact');
  rmSync(path);
  t.is(journal.verify(), 'rebuilt');
  t.is(journal.verify(), 'intact');
});

test('journal: leaves the file of another agent alone when it was replaced under it', (t) => {
  const path = filledJournal(t);
  using first = open(path);
  rmSync(path);
  using second = open(path);
  t.is(second.origin, 'fresh');
  t.throws(() => first.putRuleMode('compact'), { code: 'JOURNAL_LOCKED' });
  t.is(second.verify(), 'intact');
});
