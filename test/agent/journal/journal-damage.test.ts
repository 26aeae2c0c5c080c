import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
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
  'is a folder with something in it': (path) => {
    rmSync(path);
    mkdirSync(`${path}/deeper`, { recursive: true });
  },
  'is a link to itself': (path) => replaceByLink(path, path),
  'is a link that leads nowhere': (path) => replaceByLink('/nowhere/at/all', path),
  'is a link to a device': (path) => replaceByLink('/dev/zero', path),
  'is a FIFO': (path) => {
    rmSync(path);
    execFileSync('mkfifo', [path]);
  },
  'has a folder as rollback journal': (path) => {
    rmSync(`${path}-journal`);
    mkdirSync(`${path}-journal/deeper`, { recursive: true });
  },
  'has a FIFO as rollback journal': (path) => {
    rmSync(`${path}-journal`);
    execFileSync('mkfifo', [`${path}-journal`]);
  },
  'has a link to a device as rollback journal': (path) => replaceByLink('/dev/full', `${path}-journal`),
  'has a link to itself as rollback journal': (path) => replaceByLink(`${path}-journal`, `${path}-journal`),
};

function replaceByLink(target: string, path: string): void {
  rmSync(path);
  symlinkSync(target, path);
}

for (const [what, damage] of Object.entries(DAMAGE)) {
  test(`openJournal: starts again and keeps the old file aside when it ${what}`, (t) => {
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

test('openJournal: starts when what was moved aside before is a folder, a link or a FIFO, and keeps the last three', (t) => {
  const path = filledJournal(t);
  for (const number of [1, 2, 3]) mkdirSync(`${path}.damaged-${number}/deeper`, { recursive: true });
  mkdirSync(`${path}.damaged-2-journal/deeper`, { recursive: true });
  symlinkSync(`${path}.damaged-4`, `${path}.damaged-4`);
  execFileSync('mkfifo', [`${path}.damaged-5`]);
  mkdirSync(`${path}.new/deeper`, { recursive: true });
  writeFileSync(path, 'garbage');
  using journal = open(path);
  t.is(journal.movedTo, `${path}.damaged-6`);
  const kept = readdirSync(dirname(path)).filter((name) => /damaged-\d+$/.test(name));
  t.deepEqual(kept.sort(), ['journal.db.damaged-4', 'journal.db.damaged-5', 'journal.db.damaged-6']);
});

test('openJournal: begins one where only a folder stands in the place of its rollback journal', (t) => {
  const path = filledJournal(t);
  rmSync(path);
  rmSync(`${path}-journal`);
  mkdirSync(`${path}-journal/deeper`, { recursive: true });
  using journal = open(path);
  t.is(journal.origin, 'fresh');
  journal.putLease(LEASE);
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
  'was replaced by a folder': (path) => {
    rmSync(path);
    mkdirSync(`${path}/deeper`, { recursive: true });
  },
  'was replaced by a link to itself': (path) => replaceByLink(path, path),
  'was replaced by a FIFO': (path) => {
    rmSync(path);
    execFileSync('mkfifo', [path]);
  },
  'was cut': (path) => truncateSync(path, 4096),
  'was emptied': (path) => truncateSync(path, 0),
};

for (const [what, lose] of Object.entries(LOSS)) {
  test(`journal: writes itself again from memory when its open file ${what}`, (t) => {
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

test('verify: writes it again when a folder stands in the place of its rollback journal', (t) => {
  const path = filledJournal(t);
  using journal = open(path);
  rmSync(`${path}-journal`);
  mkdirSync(`${path}-journal/deeper`, { recursive: true });
  t.is(journal.verify(), 'rebuilt');
  t.is(journal.verify(), 'intact');
});

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
