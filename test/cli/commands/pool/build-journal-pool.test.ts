import test from 'ava';
import { buildJournalPool } from '../../../../cli/commands/pool/build-journal-pool.ts';
import { countUses } from '../../../../cli/commands/pool/pool-view.ts';
import { JOURNAL_SAMPLE } from '../../agent/samples.ts';

test('buildJournalPool: tells each address by what the journal holds of it', (t) => {
  const view = buildJournalPool(JOURNAL_SAMPLE, [], 22_000);
  const uses = new Map(view.addresses.map(({ ip, use }) => [ip, use]));
  t.deepEqual(Object.fromEntries(uses), {
    '10.0.2.10': 'in-use',
    '10.0.2.11': 'free',
    '10.0.2.12': 'cooling',
    '10.0.2.13': 'offered',
    '10.0.2.14': 'releasing',
    '10.0.1.20': 'unready',
    // In use, and no longer in the supply.
    'fd00:10:0:2::a': 'in-use',
  });
  t.is(view.addresses.find(({ ip }) => ip === '10.0.2.12')?.coolRemainingMs, 100_000);
  t.deepEqual(
    view.addresses.filter(({ isUnlisted }) => isUnlisted === true).map(({ ip }) => ip),
    ['fd00:10:0:2::a'],
  );
  t.is(countUses(view.addresses).total, 7);
});

test('buildJournalPool: counts an address as free once its cooldown is over', (t) => {
  const view = buildJournalPool(JOURNAL_SAMPLE, [], 122_000);
  t.is(view.addresses.find(({ ip }) => ip === '10.0.2.12')?.use, 'free');
});

test('buildJournalPool: knows an offer by its assignment, not by its address alone', (t) => {
  const offers = [{ ip: '10.0.2.11', family: 4, eniId: 'eni-aaaa1111', assignmentId: 'an-earlier-one' }] as const;
  const view = buildJournalPool({ ...JOURNAL_SAMPLE, offers }, [], 22_000);
  t.is(view.addresses.find(({ ip }) => ip === '10.0.2.11')?.use, 'free');
});

test('buildJournalPool: lists an ENI that the supply lost and the journal still has', (t) => {
  const { enis } = buildJournalPool(JOURNAL_SAMPLE, [], 0);
  t.deepEqual(
    enis.map(({ eniId, attached, table }) => ({ eniId, attached, table })),
    [
      { eniId: 'eni-aaaa1111', attached: true, table: 4003 },
      { eniId: 'eni-bbbb2222', attached: false, table: undefined },
      { eniId: 'eni-gone', attached: false, table: 4009 },
    ],
  );
  t.deepEqual(enis[0]?.primary[0], { ip: '10.0.2.5', subnetCidr: '10.0.2.0/24' });
});

test('buildJournalPool: says so when there is no supply', (t) => {
  const view = buildJournalPool({ leases: [], cooldowns: [], enis: [] }, [], 0);
  t.is(view.supplyProblem, 'the journal holds no supply');
  t.deepEqual(view.addresses, []);
});
