import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import type { JournalContent } from '../../../agent/journal/journal-content.ts';
import { IS_LONG, longTest } from '../../support/suite-part.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { open } from './journal-fixture.ts';

const WRITER = fileURLToPath(new URL('journal-writer.ts', import.meta.url));
const KILLS = IS_LONG ? 25 : 6;

/** Lets a writer work on the journal for a while, kills it, and returns what it said last. */
async function killWriter(path: string, ms: number): Promise<{ begun: number; done: number }> {
  const child = spawn(process.execPath, [WRITER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said = (said + chunk).slice(-200);
  });
  await once(child.stdout, 'data');
  await sleep(ms);
  child.kill('SIGKILL');
  await once(child, 'close');
  const last = (word: string) => Number([...said.matchAll(new RegExp(`${word} (\\d+)\n`, 'g'))].at(-1)?.[1] ?? 0);
  return { begun: last('begin'), done: last('end') };
}

/** What no kill may leave behind; openJournal has compared owners with leases already. */
function findHalves(content: JournalContent): readonly string[] {
  const leased = new Set(content.leases.flatMap((lease) => lease.addresses.map((address) => address.ip)));
  const cooling = new Map(content.cooldowns.map((entry) => [entry.ip, entry]));
  const halves: string[] = [];
  for (const ip of cooling.keys()) {
    if (leased.has(ip)) halves.push(`${ip} is leased and cools`);
    const slot = ip.split(/[.:]/).at(-1);
    const partner = cooling.get(ip.includes(':') ? `10.0.0.${slot}` : `fd00::${slot}`);
    if (partner?.freedAtMs !== cooling.get(ip)?.freedAtMs) halves.push(`${ip} cools without its partner`);
  }
  for (const lease of content.leases) {
    if (lease.addresses.length !== 2) halves.push(`${lease.containerId} has ${lease.addresses.length} addresses`);
    if (lease.state === 'pending' && lease.podMac !== undefined) halves.push(`${lease.containerId} is half active`);
    if (lease.state === 'active' && lease.podMac === undefined) halves.push(`${lease.containerId} is half active`);
  }
  return halves;
}

test('journal: holds every transaction as a whole or not at all when its writer is killed', async (t) => {
  const folder = createTempDir('kill');
  t.teardown(() => folder.close());
  const path = folder.join('journal.db');
  let transactions = 0;
  let kills = 0;
  // A writer that had to wait for a core was killed before its first transaction: then others follow.
  for (let kill = 0; kill < KILLS || (transactions <= KILLS && kill < 20 * KILLS); kill++) {
    kills += 1;
    const { begun, done } = await killWriter(path, 3 + ((kill * 7) % 40));
    t.true(begun - done <= 1);
    transactions += done;
    using journal = open(path);
    t.is(journal.origin, 'existing', `kill ${kill}`);
    t.deepEqual(findHalves(journal.load()), [], `kill ${kill}`);
  }
  t.log(`${kills} kills, ${transactions} transactions`);
  t.true(transactions > KILLS);
});

test('journal: keeps what it said was done when its writer is killed', async (t) => {
  const folder = createTempDir('kill');
  t.teardown(() => folder.close());
  for (let kill = 0; kill < (IS_LONG ? 10 : 5); kill++) {
    const path = folder.join(`journal-${kill}.db`);
    const { done } = await killWriter(path, kill * 2);
    using journal = open(path);
    // The writer's rounds have 4 or 5 transactions; the newest lease tells how far the file got.
    const newest = Math.max(
      -1,
      ...journal.load().leases.map((lease) => lease.createdAtMs),
      ...journal.load().cooldowns.map((c) => c.freedAtMs),
    );
    t.true(transactionsUpTo(newest) >= done, `round ${newest} of the file, transaction ${done} of the writer`);
  }
});

const hasStrace = spawnSync('strace', ['-V']).status === 0;
const traced = hasStrace ? test : test.skip;
const longTraced = hasStrace ? longTest : longTest.skip;

/** Runs a writer that the kernel kills at its `nth` write to a database file. */
async function killAtWrite(path: string, nth: number): Promise<void> {
  const inject = `inject=pwrite64:signal=KILL:when=${nth}`;
  const argv = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64', '-e', inject, process.execPath, WRITER, path];
  const child = spawn('strace', argv, { stdio: ['ignore', 'ignore', 'inherit'] });
  await once(child, 'close');
}

longTraced('journal: is whole when its writer is killed at any of its writes to the file', async (t) => {
  const folder = createTempDir('kill');
  t.teardown(() => folder.close());
  // One round takes about a hundred writes: intent, activation, supply, releasing, erasing.
  for (let nth = 1; nth <= 120; nth += 5) {
    const path = folder.join(`${nth}.db`);
    open(path).close();
    await killAtWrite(path, nth);
    using journal = open(path);
    t.is(journal.origin, 'existing', `write ${nth}`);
    t.deepEqual(findHalves(journal.load()), [], `write ${nth}`);
  }
});

traced('openJournal: leaves nothing half made when killed while it makes a file', async (t) => {
  const folder = createTempDir('kill');
  t.teardown(() => folder.close());
  for (const nth of IS_LONG ? [1, 2, 5, 20, 100, 200, 260, 275, 290] : [2, 100, 260, 290]) {
    const path = folder.join(`${nth}.db`);
    await killAtWrite(path, nth);
    using journal = open(path);
    t.true(journal.origin === 'fresh' || journal.origin === 'existing', `write ${nth}: ${journal.origin}`);
  }
});

/** Numbers the last transaction of a round of journal-writer.ts. */
function transactionsUpTo(round: number): number {
  let count = 0;
  for (let i = 0; i <= round; i++) count += 3 + (i % 3 === 0 ? 1 : 0) + (i % 2 === 0 ? 1 : 0);
  return count;
}
