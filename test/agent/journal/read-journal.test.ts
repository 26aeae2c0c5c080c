import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { readJournal } from '../../../agent/journal/read-journal.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleLease } from '../pool/supply-sample.ts';
import { open } from './journal-fixture.ts';

const WRITER = fileURLToPath(new URL('journal-writer.ts', import.meta.url));

test('readJournal: reads what an agent that has it open wrote last, and leaves it alone', (t) => {
  const folder = createTempDir('read');
  t.teardown(() => folder.close());
  const path = folder.join('journal.db');
  using journal = open(path);
  const lease = sampleLease('one', 'eni-a', ['10.0.0.5']);
  journal.putLease(lease);
  t.deepEqual(readJournal(path), { leases: [lease], cooldowns: [], enis: [], bootId: 'boot-1', needsAdoption: true });
  t.is(journal.verify(), 'intact');
  journal.putRuleMode('compact');
  t.is(readJournal(path).ruleMode, 'compact');
});

test('readJournal: sees whole transactions when the writer stands still in the middle of one', async (t) => {
  const folder = createTempDir('read');
  const path = folder.join('journal.db');
  const writer = spawn(process.execPath, [WRITER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(async () => {
    writer.kill('SIGKILL');
    await once(writer, 'close');
    folder.close();
  });
  await once(writer.stdout.resume(), 'data');
  let seen = 0;
  // The writer may have to wait for a core before its first lease.
  for (let i = 0; i < 20 || (seen === 0 && i < 200); i++) {
    writer.kill('SIGSTOP');
    await sleep(2);
    const { leases, cooldowns } = readJournal(path);
    const leased = new Set(leases.flatMap((lease) => lease.addresses.map(({ ip }) => ip)));
    seen += leases.length;
    t.deepEqual(
      cooldowns.filter(({ ip }) => leased.has(ip)),
      [],
    );
    writer.kill('SIGCONT');
    await sleep(1 + i);
  }
  t.true(seen > 0);
});

test('readJournal: finds another place for its copy where the first cannot be written', (t) => {
  const folder = createTempDir('read');
  t.teardown(() => folder.close());
  const path = folder.join('journal.db');
  using journal = open(path);
  const lease = sampleLease('one', 'eni-a', ['10.0.0.5']);
  journal.putLease(lease);
  const second = folder.join('second');
  mkdirSync(second);
  t.deepEqual(readJournal(path, ['/proc', second]).leases, [lease]);
  t.deepEqual(readdirSync(second), []);
  t.throws(() => readJournal(path, ['/proc']), { code: 'JOURNAL_BROKEN', message: /\/proc/ });
});

test('readJournal: says what is wrong when there is none, or a damaged one', (t) => {
  const folder = createTempDir('read');
  t.teardown(() => folder.close());
  const path = folder.join('journal.db');
  t.throws(() => readJournal(path), { code: 'JOURNAL_BROKEN', message: /ENOENT/ });
  open(path).close();
  writeFileSync(path, 'garbage');
  t.throws(() => readJournal(path), { code: 'JOURNAL_BROKEN', message: /not a database/ });
  rmSync(path);
});

test('readJournal: refuses at once what is no regular file, in the place of the journal or of its rollback journal', (t) => {
  const folder = createTempDir('read');
  t.teardown(() => folder.close());
  const path = folder.join('journal.db');
  const refused = (what: string, message: RegExp, make: () => void) => {
    rmSync(folder.path, { recursive: true });
    mkdirSync(folder.path);
    open(path).close();
    make();
    t.throws(() => readJournal(path), { code: 'JOURNAL_BROKEN', message }, what);
  };
  for (const place of [path, `${path}-journal`]) {
    const put = (make: () => void) => () => {
      rmSync(place);
      make();
    };
    refused(
      'a FIFO',
      /is a FIFO/,
      put(() => execFileSync('mkfifo', [place])),
    );
    refused(
      'a device',
      /is a device/,
      put(() => symlinkSync('/dev/zero', place)),
    );
    refused(
      'a folder',
      /is a folder/,
      put(() => mkdirSync(place)),
    );
    refused(
      'a link to itself',
      /ELOOP/,
      put(() => symlinkSync(place, place)),
    );
  }
  refused('a huge file', /more than \d+ bytes/, () => truncateSync(path, 257 * 1024 * 1024));
});
