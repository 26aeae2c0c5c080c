import { statSync, utimesSync } from 'node:fs';
import test from 'ava';
import { openJournal } from '../../../agent/journal/journal.ts';
import { JournalError } from '../../../agent/journal/journal-error.ts';
import { run } from '../../../sim/support/run.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';
import { cooldownsOf, keyOf, NOW_MS, open } from './journal-fixture.ts';

const VETH = { name: 'eni0123456789a', mac: '02:00:00:00:00:aa', ifindex: 7 };

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

test('journal: remembers everything over a restart', (t) => {
  const path = tempJournal(t);
  const pending = sampleLease('one', 'eni-a', ['10.0.0.5', 'fd00::5']);
  const active = sampleLease('two', 'eni-a', ['10.0.0.6']);
  const gone = sampleLease('three', 'eni-a', ['10.0.0.7']);
  const eni = { eniId: 'eni-a', mac: '02:00:00:00:00:01', table: 4007, slot: 1 };
  const supply = sampleSupply([sampleEni('eni-a', ['10.0.0.5', '10.0.0.6', '10.0.0.7'])], 9);
  {
    using journal = open(path);
    for (const lease of [pending, active, gone]) journal.putLease(lease);
    journal.activateLease(keyOf(active), { hostVeth: VETH, podMac: '02:00:00:00:00:bb' });
    t.true(journal.markReleasing(keyOf(gone)));
    t.true(journal.eraseLease(keyOf(gone), cooldownsOf(gone)));
    journal.putEni(eni);
    journal.putSupply(supply);
    journal.putRuleMode('per-pod');
  }
  using journal = open(path);
  t.is(journal.origin, 'existing');
  const { leases, ...rest } = journal.load();
  t.deepEqual(
    new Map(leases.map((lease) => [keyOf(lease), lease])),
    new Map([
      [keyOf(pending), pending],
      [keyOf(active), { ...active, state: 'active' as const, hostVeth: VETH, podMac: '02:00:00:00:00:bb' }],
    ]),
  );
  t.deepEqual(rest, { cooldowns: cooldownsOf(gone), enis: [eni], supply, ruleMode: 'per-pod' });
});

test('journal: says no to an unknown key without an error, but for activation', (t) => {
  using journal = open(tempJournal(t));
  t.false(journal.markReleasing('x/eth0'));
  t.false(journal.eraseLease('x/eth0', []));
  t.throws(() => journal.activateLease('x/eth0', {}), { instanceOf: JournalError, code: 'JOURNAL_NO_LEASE' });
});

test('putLease: refuses an address that another lease has, names the owner and changes nothing', (t) => {
  const path = tempJournal(t);
  const owner = sampleLease('owner', 'eni-a', ['10.0.0.5']);
  const thief = sampleLease('thief', 'eni-a', ['10.0.0.6', '10.0.0.5']);
  {
    using journal = open(path);
    journal.putLease(owner);
    const error = t.throws(() => journal.putLease(thief), { code: 'JOURNAL_ADDRESS_TAKEN' });
    t.regex(error?.message ?? '', /10\.0\.0\.5 belongs to sandbox owner \(eth0\)/);
    t.deepEqual(journal.load().leases, [owner]);
  }
  using again = open(path);
  t.deepEqual(again.load().leases, [owner]);
});

test('putLease: replaces a lease of the same key and gives its old addresses up', (t) => {
  using journal = open(tempJournal(t));
  journal.putLease(sampleLease('one', 'eni-a', ['10.0.0.5']));
  journal.putLease(sampleLease('one', 'eni-a', ['10.0.0.6']));
  t.notThrows(() => journal.putLease(sampleLease('two', 'eni-a', ['10.0.0.5'])));
});

test('putLease: ends the cooldown of its addresses', (t) => {
  const path = tempJournal(t);
  const lease = sampleLease('one', 'eni-a', ['10.0.0.5']);
  {
    using journal = open(path);
    journal.putLease(lease);
    journal.eraseLease(keyOf(lease), cooldownsOf(lease));
    t.is(journal.load().cooldowns.length, 1);
    journal.putLease(sampleLease('two', 'eni-a', ['10.0.0.5']));
    t.deepEqual(journal.load().cooldowns, []);
  }
  using again = open(path);
  t.deepEqual(again.load().cooldowns, []);
});

test('eraseCooldowns: forgets those named and no other', (t) => {
  const path = tempJournal(t);
  const lease = sampleLease('one', 'eni-a', ['10.0.0.5', 'fd00::5']);
  {
    using journal = open(path);
    journal.putLease(lease);
    journal.eraseLease(keyOf(lease), cooldownsOf(lease));
    journal.eraseCooldowns(['10.0.0.5', '10.9.9.9']);
  }
  using again = open(path);
  t.deepEqual(
    again.load().cooldowns.map((entry) => entry.ip),
    ['fd00::5'],
  );
});

test('load: bounds a cooldown by its length when its deadline is of another clock', (t) => {
  const path = tempJournal(t);
  const lease = sampleLease('one', 'eni-a', ['10.0.0.5']);
  {
    using journal = open(path);
    journal.putLease(lease);
    journal.eraseLease(keyOf(lease), cooldownsOf(lease));
  }
  using earlier = open(path, 'boot-1', 500);
  t.deepEqual(
    earlier.load().cooldowns.map((entry) => entry.coolUntilMs),
    [120_500],
  );
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

test('putEni: refuses a table or a slot of another ENI, and takes a new MAC of the same', (t) => {
  using journal = open(tempJournal(t));
  const first = { eniId: 'eni-a', mac: '02:00:00:00:00:01', table: 4007, slot: 1 };
  journal.putEni(first);
  const table = t.throws(() => journal.putEni({ ...first, eniId: 'eni-b', slot: 2 }), { code: 'JOURNAL_ENI_CONFLICT' });
  t.regex(table?.message ?? '', /eni-b cannot have table 4007, slot 2: eni-a has table 4007, slot 1/);
  t.throws(() => journal.putEni({ ...first, eniId: 'eni-b', table: 4008 }), { code: 'JOURNAL_ENI_CONFLICT' });
  journal.putEni({ ...first, mac: '02:00:00:00:00:02' });
  t.deepEqual(journal.load().enis, [{ ...first, mac: '02:00:00:00:00:02' }]);
  journal.eraseEni('eni-a');
  t.notThrows(() => journal.putEni({ ...first, eniId: 'eni-b' }));
});

test('openJournal: replaces the journal of another boot', (t) => {
  const path = tempJournal(t);
  {
    using journal = open(path, 'boot-1');
    journal.putLease(sampleLease('one', 'eni-a', ['10.0.0.5']));
  }
  using journal = open(path, 'boot-2');
  t.is(journal.origin, 'replaced-other-boot');
  t.deepEqual(journal.load().leases, []);
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

test('close: makes every later write an error', (t) => {
  const journal = open(tempJournal(t));
  journal.close();
  t.throws(() => journal.putRuleMode('compact'), { code: 'JOURNAL_BROKEN', message: /it is closed/ });
});
