import test, { type ExecutionContext } from 'ava';
import type { Journal, Offer } from '../../../agent/journal/journal-content.ts';
import { JournalError } from '../../../agent/journal/journal-error.ts';
import type { Supply } from '../../../agent/journal/supply.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { JournalPlace } from '../../simulation/memory-journal.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';
import { cooldownsOf, keyOf, NOW_MS, open as openFile } from './journal-fixture.ts';

// What every journal does: the one in a file, which an agent has, and the one in memory, which a simulated agent has.

/** Where one journal is, over the lives of agents. */
type Place = { open(bootId?: string, nowMs?: number): Journal };

const PLACES: Readonly<Record<string, (t: ExecutionContext) => Place>> = {
  file: (t) => {
    const folder = createTempDir('journal');
    t.teardown(() => folder.close());
    return { open: (bootId, nowMs) => openFile(folder.join('state', 'journal.db'), bootId, nowMs) };
  },
  memory: () => {
    const place = new JournalPlace();
    return { open: (bootId = 'boot-1', nowMs = NOW_MS) => place.open(bootId, { bootMs: () => nowMs }) };
  },
};

const VETH = { name: 'eni0123456789a', mac: '02:00:00:00:00:aa', ifindex: 7 };
const LEASE = sampleLease('one', 'eni-a', ['10.0.0.5']);
const offerOf = (ip: string): Offer => ({ ip, family: 4, eniId: 'eni-a', assignmentId: `as-${ip}` });
const TWO = [offerOf('10.0.0.1'), offerOf('10.0.0.2')];

const MINE = { namespace: 'ns', name: 'web-0', uid: 'u1' };
const NOBODYS = { namespace: 'ns', name: 'web-1' };
const addresses = [
  sampleAddress('10.0.0.5', { claim: MINE }),
  sampleAddress('10.0.0.6', { claim: NOBODYS }),
  sampleAddress('10.0.0.7'),
];
const SUPPLY: Supply = {
  ...sampleSupply([sampleEni('eni-a', [], { addresses })], 9),
  isStaticIpEnabled: true,
  takenOver: [{ ip: '10.0.0.8', leaseKey: 'old/eth0' }],
  warm: { min: 5, max: 5, limit: 27, keptPlaces: 2 },
};

for (const [kind, placeOf] of Object.entries(PLACES)) {
  test(`${kind}, journal: remembers everything over a restart`, (t) => {
    const place = placeOf(t);
    const pending = sampleLease('one', 'eni-a', ['10.0.0.5', 'fd00::5']);
    const active = sampleLease('two', 'eni-a', ['10.0.0.6']);
    const gone = sampleLease('three', 'eni-a', ['10.0.0.7']);
    const eni = { eniId: 'eni-a', mac: '02:00:00:00:00:01', table: 4007, slot: 1 };
    const supply = sampleSupply([sampleEni('eni-a', ['10.0.0.5', '10.0.0.6', '10.0.0.7'])], 9);
    {
      using journal = place.open();
      for (const lease of [pending, active, gone]) journal.putLease(lease);
      journal.activateLease(keyOf(active), { hostVeth: VETH, podMac: '02:00:00:00:00:bb' });
      t.true(journal.markReleasing(keyOf(gone)));
      t.true(journal.eraseLease(keyOf(gone), cooldownsOf(gone)));
      journal.putEni(eni);
      journal.putSupply(supply);
      journal.putRuleMode('per-pod');
    }
    using journal = place.open();
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

  test(`${kind}, journal: says no to an unknown key without an error, but for activation`, (t) => {
    using journal = placeOf(t).open();
    t.false(journal.markReleasing('x/eth0'));
    t.false(journal.eraseLease('x/eth0', []));
    t.throws(() => journal.activateLease('x/eth0', {}), { instanceOf: JournalError, code: 'JOURNAL_NO_LEASE' });
  });

  test(`${kind}, putLease: refuses an address that another lease has, names the owner and changes nothing`, (t) => {
    const place = placeOf(t);
    const owner = sampleLease('owner', 'eni-a', ['10.0.0.5']);
    const thief = sampleLease('thief', 'eni-a', ['10.0.0.6', '10.0.0.5']);
    {
      using journal = place.open();
      journal.putLease(owner);
      const error = t.throws(() => journal.putLease(thief), { code: 'JOURNAL_ADDRESS_TAKEN' });
      t.regex(error?.message ?? '', /10\.0\.0\.5 belongs to sandbox owner \(eth0\)/);
      t.deepEqual(journal.load().leases, [owner]);
    }
    using again = place.open();
    t.deepEqual(again.load().leases, [owner]);
  });

  test(`${kind}, putLease: replaces a lease of the same key and gives its old addresses up`, (t) => {
    using journal = placeOf(t).open();
    journal.putLease(sampleLease('one', 'eni-a', ['10.0.0.5']));
    journal.putLease(sampleLease('one', 'eni-a', ['10.0.0.6']));
    t.notThrows(() => journal.putLease(sampleLease('two', 'eni-a', ['10.0.0.5'])));
  });

  test(`${kind}, putLease: ends the cooldown of its addresses`, (t) => {
    const place = placeOf(t);
    const lease = sampleLease('one', 'eni-a', ['10.0.0.5']);
    {
      using journal = place.open();
      journal.putLease(lease);
      journal.eraseLease(keyOf(lease), cooldownsOf(lease));
      t.is(journal.load().cooldowns.length, 1);
      journal.putLease(sampleLease('two', 'eni-a', ['10.0.0.5']));
      t.deepEqual(journal.load().cooldowns, []);
    }
    using again = place.open();
    t.deepEqual(again.load().cooldowns, []);
  });

  test(`${kind}, eraseCooldowns: forgets those named and no other`, (t) => {
    const place = placeOf(t);
    const lease = sampleLease('one', 'eni-a', ['10.0.0.5', 'fd00::5']);
    {
      using journal = place.open();
      journal.putLease(lease);
      journal.eraseLease(keyOf(lease), cooldownsOf(lease));
      journal.eraseCooldowns(['10.0.0.5', '10.9.9.9']);
    }
    using again = place.open();
    t.deepEqual(
      again.load().cooldowns.map((entry) => entry.ip),
      ['fd00::5'],
    );
  });

  test(`${kind}, load: bounds a cooldown by its length when its deadline is of another clock`, (t) => {
    const place = placeOf(t);
    const lease = sampleLease('one', 'eni-a', ['10.0.0.5']);
    {
      using journal = place.open();
      journal.putLease(lease);
      journal.eraseLease(keyOf(lease), cooldownsOf(lease));
    }
    using earlier = place.open('boot-1', 500);
    t.deepEqual(
      earlier.load().cooldowns.map((entry) => entry.coolUntilMs),
      [120_500],
    );
  });

  test(`${kind}, putEni: refuses a table or a slot of another ENI, and takes a new MAC of the same`, (t) => {
    using journal = placeOf(t).open();
    const first = { eniId: 'eni-a', mac: '02:00:00:00:00:01', table: 4007, slot: 1 };
    journal.putEni(first);
    const table = t.throws(() => journal.putEni({ ...first, eniId: 'eni-b', slot: 2 }), {
      code: 'JOURNAL_ENI_CONFLICT',
    });
    t.regex(table?.message ?? '', /eni-b cannot have table 4007, slot 2: eni-a has table 4007, slot 1/);
    t.throws(() => journal.putEni({ ...first, eniId: 'eni-b', table: 4008 }), { code: 'JOURNAL_ENI_CONFLICT' });
    journal.putEni({ ...first, mac: '02:00:00:00:00:02' });
    t.deepEqual(journal.load().enis, [{ ...first, mac: '02:00:00:00:00:02' }]);
    journal.eraseEni('eni-a');
    t.notThrows(() => journal.putEni({ ...first, eniId: 'eni-b' }));
  });

  test(`${kind}, openJournal: replaces the journal of another boot`, (t) => {
    const place = placeOf(t);
    {
      using journal = place.open('boot-1');
      journal.putLease(sampleLease('one', 'eni-a', ['10.0.0.5']));
    }
    using journal = place.open('boot-2');
    t.is(journal.origin, 'replaced-other-boot');
    t.deepEqual(journal.load().leases, []);
  });

  test(`${kind}, close: makes every later write an error`, (t) => {
    const journal = placeOf(t).open();
    journal.close();
    t.throws(() => journal.putRuleMode('compact'), { code: 'JOURNAL_BROKEN', message: /it is closed/ });
  });

  test(`${kind}, journal: keeps offers over a restart until they are erased`, (t) => {
    const place = placeOf(t);
    {
      using journal = place.open();
      journal.putOffers(TWO);
      journal.putOffers(TWO);
      journal.eraseOffers(['10.0.0.1', 'unknown']);
      journal.putLife('life-1');
    }
    using again = place.open();
    t.deepEqual(again.load(), { leases: [], cooldowns: [], enis: [], offers: [TWO[1]], life: 'life-1' });
  });

  test(`${kind}, needsAdoption: stays over a crash in the middle of an adoption`, (t) => {
    const place = placeOf(t);
    {
      using journal = place.open();
      t.true(journal.needsAdoption);
      journal.putLease(LEASE);
    }
    using again = place.open();
    t.is(again.origin, 'existing');
    t.true(again.needsAdoption, 'who knows how many Pods it had come to');
    t.deepEqual(again.load().leases, [LEASE]);
  });

  test(`${kind}, markAdopted: lasts, and is idempotent`, (t) => {
    const place = placeOf(t);
    {
      using journal = place.open();
      journal.markAdopted();
      journal.markAdopted();
      t.false(journal.needsAdoption);
    }
    using again = place.open();
    t.false(again.needsAdoption);
  });

  test(`${kind}, needsAdoption: a journal of another boot knows nothing of the Pods of this one`, (t) => {
    const place = placeOf(t);
    {
      using journal = place.open();
      journal.markAdopted();
    }
    using again = place.open('boot-2');
    t.true(again.needsAdoption);
  });

  test(`${kind}, journal: a supply with kept addresses outlives the agent, and serves their Pods alone`, (t) => {
    const place = placeOf(t);
    {
      using journal = place.open();
      journal.putSupply(SUPPLY);
      journal.putLease(sampleLease('old', 'eni-a', ['10.0.0.8'], { state: 'active' }));
      journal.putOffers([{ ip: '10.0.0.6', family: 4, eniId: 'eni-a', assignmentId: 'as-10.0.0.6' }]);
    }
    using journal = place.open();
    t.deepEqual(journal.load().supply, SUPPLY);
    const state = new NodeState(systemClock);
    state.restore(journal.load());
    t.like(state.pool.counts(), { kept: 1, free: 1, withdrawn: 1, leased: 1 });
    t.is(state.pool.leaseStatic({ key: 'c/eth0', pod: { ...MINE, uid: 'u2' }, families: [4] }).kind, 'waits');
    t.is(state.pool.leaseStatic({ key: 'c/eth0', pod: MINE, families: [4] }).kind, 'leased');
  });
}
