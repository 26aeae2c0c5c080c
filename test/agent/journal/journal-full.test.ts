import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import type { Lease } from '../../../agent/journal/lease.ts';
import { run } from '../../../sim/support/run.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';
import { cooldownsOf, keyOf, open } from './journal-fixture.ts';

// Needs root: a small tmpfs of its own is the only honest full disk.
const fullDisk = process.getuid?.() === 0 ? test : test.skip;

async function mountTmpfs(t: ExecutionContext, kib: number): Promise<string> {
  const folder = createTempDir('full');
  const path = folder.join('run');
  mkdirSync(path);
  await run(['mount', '-t', 'tmpfs', '-o', `size=${kib}k`, 'tke-test', path]);
  t.teardown(async () => {
    await run(['umount', path]);
    folder.close();
  });
  return path;
}

/** Takes all space that is left, to the last page. */
function fill(folder: string): void {
  const file = `${folder}/filler`;
  for (let blockBytes = 64 * 1024; blockBytes >= 4096; blockBytes /= 2) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(blockBytes, 1), { flag: 'a' });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
    }
  }
}

function sandbox(number: number): Lease {
  const ips = [`10.0.${number >> 8}.${number & 255}`, `fd00::${number.toString(16)}`];
  return sampleLease(`${'c'.repeat(60)}${number}`, 'eni-a', ips, { netns: `/run/netns/${'n'.repeat(40)}` });
}

const WHOLE_NODE = 250;
const MANY = 5_000;

fullDisk('journal: serves a whole node when the disk is full from the start', async (t) => {
  const folder = await mountTmpfs(t, 2048);
  using journal = open(`${folder}/journal.db`);
  fill(folder);
  const leases = Array.from({ length: WHOLE_NODE }, (_, i) => sandbox(i));
  const ips = leases.flatMap((lease) => lease.addresses.map((address) => address.ip));
  journal.putSupply(sampleSupply([sampleEni('eni-a', ips)]));
  for (const lease of leases) {
    journal.putLease(lease);
    journal.activateLease(keyOf(lease), { podMac: '02:00:00:00:00:01' });
  }
  t.is(journal.load().leases.length, WHOLE_NODE);
});

fullDisk('journal: refuses new leases on a full disk with an error, and still ends every lease', async (t) => {
  const folder = await mountTmpfs(t, 2048);
  const path = `${folder}/journal.db`;
  const held: Lease[] = [];
  {
    using journal = open(path);
    fill(folder);
    const error = t.throws(
      () => {
        for (let i = 0; i < MANY; i++) {
          journal.putLease(sandbox(i));
          held.push(sandbox(i));
        }
      },
      { code: 'JOURNAL_FULL' },
    );
    t.regex(error?.message ?? '', /no space left in its file system; free some/);
    t.is(journal.load().leases.length, held.length);
    t.true(held.length > WHOLE_NODE);
    for (const lease of held) {
      journal.activateLease(keyOf(lease), {
        podMac: '02:00:00:00:00:01',
        hostVeth: { name: 'eni01234567890', mac: '02:00:00:00:00:02', ifindex: 7 },
      });
    }
    for (const lease of held) t.true(journal.markReleasing(keyOf(lease)));
  }
  using again = open(path);
  t.is(again.load().leases.length, held.length);
  for (const lease of held) t.true(again.eraseLease(keyOf(lease), cooldownsOf(lease)));
  t.is(again.load().cooldowns.length, held.length * 2);
  again.eraseCooldowns(again.load().cooldowns.map((entry) => entry.ip));
  t.notThrows(() => again.putLease(sandbox(0)));
});

fullDisk('journal: grows again when there is space again', async (t) => {
  const folder = await mountTmpfs(t, 4096);
  using journal = open(`${folder}/journal.db`);
  fill(folder);
  let number = 0;
  t.throws(() => {
    for (; number < MANY; number++) journal.putLease(sandbox(number));
  });
  rmSync(`${folder}/filler`);
  t.notThrows(() => journal.putLease(sandbox(number)));
});

fullDisk('openJournal: says that the disk is full and leaves nothing when it cannot make a file', async (t) => {
  const folder = await mountTmpfs(t, 512);
  t.throws(() => open(`${folder}/journal.db`), { code: 'JOURNAL_FULL' });
  t.is(statSync(`${folder}/journal.db.new`, { throwIfNoEntry: false }), undefined);
  t.is(statSync(`${folder}/journal.db`, { throwIfNoEntry: false }), undefined);
});

fullDisk('openJournal: gives the space of damaged files to a new one when there is no other', async (t) => {
  const folder = await mountTmpfs(t, 2048);
  const path = `${folder}/journal.db`;
  open(path).close();
  fill(folder);
  writeFileSync(path, 'garbage', { flag: 'r+' });
  using journal = open(path);
  t.is(journal.origin, 'replaced-damaged');
  t.notThrows(() => journal.putLease(sandbox(1)));
});

fullDisk('journal: rebuilds on a full disk when its open file was deleted', async (t) => {
  const folder = await mountTmpfs(t, 2048);
  const path = `${folder}/journal.db`;
  using journal = open(path);
  journal.putLease(sandbox(1));
  fill(folder);
  rmSync(path);
  journal.putLease(sandbox(2));
  t.is(journal.load().leases.length, 2);
});
