import { statSync, utimesSync } from 'node:fs';
import test from 'ava';
import { openJournal } from '../../../agent/journal/journal.ts';
import { JournalError } from '../../../agent/journal/journal-error.ts';
import { run } from '../../../sim/support/run.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';
import { NOW_MS, open } from './journal-fixture.ts';

function tempJournal(t: { teardown(run: () => void): void }): string {
  const folder = createTempDir('journal');
  t.teardown(() => folder.close());
  return folder.join('state', 'journal.db');
}

test('openJournal: makes a new file that only root may read, and its folder', (t) => {
  const path = tempJournal(t);
  using journal = open(path);
  t.is(journal.origin, 'fresh');
  t.deepEqual(journal.load(), { leases: [], cooldowns: [], enis: [] });
  t.is(statSync(path).mode & 0o777, 0o600);
});

test('openJournal: says in one line why its folder cannot be made', (t) => {
  for (const [path, reason] of [
    ['/etc/passwd/state/journal.db', 'ENOTDIR'],
    ['/proc/tke-test/journal.db', 'ENOENT'],
  ] as const) {
    const error = t.throws(() => open(path), { instanceOf: JournalError, code: 'JOURNAL_BROKEN' });
    t.regex(error?.message ?? '', new RegExp(`^journal ${path}: cannot be made: .*${reason}.*; see --state-dir$`));
  }
});

test('journal: writes what changed and nothing that is on record already, after a restart either', (t) => {
  const path = tempJournal(t);
  const eni = { eniId: 'eni-a', mac: '02:00:00:00:00:01', table: 4007, slot: 1 };
  const offer = { ip: '10.0.0.9', family: 4, eniId: 'eni-a', assignmentId: 'as-10.0.0.9' } as const;
  const pod = { namespace: 'default', name: 'p', uid: 'u' };
  const supplyOf = (epoch: number) => sampleSupply([sampleEni('eni-a', ['10.0.0.5', '10.0.0.6'])], epoch);
  const puts: readonly ((journal: ReturnType<typeof open>, turn: number) => void)[] = [
    (journal, turn) => journal.putSupply(supplyOf(turn)),
    (journal, turn) => journal.putEni({ ...eni, mac: `02:00:00:00:00:0${turn}` }),
    (journal, turn) => journal.putOffers([{ ...offer, assignmentId: `as-${turn}` }]),
    (journal, turn) => journal.putRuleMode(turn === 1 ? 'compact' : 'per-pod'),
    (journal, turn) => journal.putLife(`life-${turn}`),
    (journal, turn) => journal.putPods([{ ...pod, uid: `u${turn}` } as never]),
    (journal, turn) => journal.putPodCidrs([`10.${turn}.0.0/24`]),
  ];
  const isWrittenBy = (run: () => void): boolean => {
    utimesSync(path, 1, 1);
    run();
    return statSync(path).mtimeMs !== 1_000;
  };
  for (const turn of [1, 2]) {
    {
      using journal = open(path);
      for (const [index, put] of puts.entries()) {
        t.true(
          isWrittenBy(() => put(journal, turn)),
          `put ${index}, turn ${turn}`,
        );
        t.false(
          isWrittenBy(() => put(journal, turn)),
          `put ${index}, turn ${turn} again`,
        );
      }
    }
    using journal = open(path);
    for (const [index, put] of puts.entries())
      t.false(
        isWrittenBy(() => put(journal, turn)),
        `put ${index}, turn ${turn}, after a restart`,
      );
  }
});

test('openJournal: reads the boot id of the kernel when none is given', (t) => {
  const path = tempJournal(t);
  const clock = { bootMs: () => NOW_MS };
  openJournal(path, { clock }).close();
  using again = openJournal(path, { clock });
  t.is(again.origin, 'existing');
});

test('openJournal: refuses a journal that another process has open, and leaves it alone', async (t) => {
  const path = tempJournal(t);
  using journal = open(path);
  journal.putLease(sampleLease('one', 'eni-a', ['10.0.0.5']));
  const script = `import { open } from ${JSON.stringify(new URL('journal-fixture.ts', import.meta.url).pathname)};
    try { open(${JSON.stringify(path)}); console.log('opened'); } catch (error) { console.log(error.code); }`;
  const stdout = await run([process.execPath, '--input-type=module', '-e', script]);
  t.is(stdout.trim(), 'JOURNAL_LOCKED');
  t.is(journal.verify(), 'intact');
});
