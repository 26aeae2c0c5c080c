import test from 'ava';
import { IpPool } from '../../../agent/pool/ip-pool.ts';
import type { LeaseResult } from '../../../agent/pool/pool-state.ts';
import type { Family } from '../../../dataplane/ip-prefix.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from './supply-sample.ts';

const V4: readonly Family[] = [4];
const DUAL: readonly Family[] = [4, 6];

function poolOf(...enis: ReturnType<typeof sampleEni>[]): IpPool {
  const pool = new IpPool();
  pool.applySupply(sampleSupply(enis));
  return pool;
}

function ipsOf(result: LeaseResult): readonly string[] {
  return result.kind === 'leased' ? result.addresses.map((address) => address.ip) : [];
}

test('lease: gives one address per family of the same ENI', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5']), sampleEni('eni-b', ['10.0.0.6', 'fd00::6']));
  t.deepEqual(ipsOf(pool.lease({ key: 'a/eth0', families: DUAL, nowMs: 0 })), ['10.0.0.6', 'fd00::6']);
  t.is(pool.lease({ key: 'b/eth0', families: DUAL, nowMs: 0 }).kind, 'exhausted');
  t.deepEqual(ipsOf(pool.lease({ key: 'b/eth0', families: V4, nowMs: 0 })), ['10.0.0.5']);
});

test('lease: gives the partner that the cloud paired with the address', (t) => {
  const eni = sampleEni('eni-a', [], {
    addresses: [
      sampleAddress('fd00::1'),
      sampleAddress('10.0.0.5', { pairedIp: 'fd00::5' }),
      sampleAddress('fd00::5', { pairedIp: '10.0.0.5' }),
    ],
  });
  t.deepEqual(ipsOf(poolOf(eni).lease({ key: 'a/eth0', families: DUAL, nowMs: 0 })), ['10.0.0.5', 'fd00::5']);
});

test('lease: fills the fullest ENI before it starts another', (t) => {
  const pool = poolOf(
    sampleEni('eni-a', ['10.0.0.5', '10.0.0.6']),
    sampleEni('eni-b', ['10.0.1.5', '10.0.1.6', '10.0.1.7']),
  );
  pool.adopt([sampleLease('old', 'eni-b', ['10.0.1.6'])]);
  const given = ['a', 'b', 'c'].flatMap((key) => ipsOf(pool.lease({ key, families: V4, nowMs: 0 })));
  t.deepEqual(given, ['10.0.1.5', '10.0.1.7', '10.0.0.5']);
});

test('lease: gives the address that was freed longest ago, and one that nobody had before that', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5', '10.0.0.6', '10.0.0.7']));
  pool.lease({ key: 'a', families: V4, nowMs: 0 });
  pool.lease({ key: 'b', families: V4, nowMs: 0 });
  pool.release({ key: 'b', nowMs: 10, cooldownMs: 5 });
  pool.release({ key: 'a', nowMs: 20, cooldownMs: 5 });
  const given = ['c', 'd', 'e'].flatMap((key) => ipsOf(pool.lease({ key, families: V4, nowMs: 30 })));
  t.deepEqual(given, ['10.0.0.7', '10.0.0.6', '10.0.0.5']);
});

test('lease: gives the same addresses when the key asks again', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5', '10.0.0.6']));
  const first = pool.lease({ key: 'a', families: V4, nowMs: 0 });
  const again = pool.lease({ key: 'a', families: V4, nowMs: 9 });
  t.deepEqual(ipsOf(again), ipsOf(first));
  t.is(again.kind === 'leased' && again.isNew, false);
  t.is(pool.counts().leased, 1);
});

test('lease: serves only from ENIs that are set up when the caller names them', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5']), sampleEni('eni-b', ['10.0.1.5']));
  t.deepEqual(ipsOf(pool.lease({ key: 'a', families: V4, nowMs: 0, enis: new Set(['eni-b']) })), ['10.0.1.5']);
  t.is(pool.lease({ key: 'b', families: V4, nowMs: 0, enis: new Set(['eni-b']) }).kind, 'exhausted');
});

for (const change of [{ draining: true }, { attached: false }]) {
  test(`lease: gives nothing of an ENI with ${JSON.stringify(change)}`, (t) => {
    t.is(
      poolOf(sampleEni('eni-a', ['10.0.0.5'], change)).lease({ key: 'a', families: V4, nowMs: 0 }).kind,
      'exhausted',
    );
  });
}

test('lease: says what there is and when the next address cools off when exhausted', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5', '10.0.0.6', 'fd00::5']));
  pool.lease({ key: 'a', families: V4, nowMs: 0 });
  pool.lease({ key: 'b', families: V4, nowMs: 0 });
  pool.release({ key: 'b', nowMs: 9_100, cooldownMs: 50 });
  t.deepEqual(pool.lease({ key: 'c', families: V4, nowMs: 9_149 }), {
    kind: 'exhausted',
    want: [4],
    free: 0,
    unserved: 0,
    cooling: 1,
    leased: 1,
    nextCoolAtMs: 9_150,
  });
  t.deepEqual(ipsOf(pool.lease({ key: 'c', families: V4, nowMs: 9_150 })), ['10.0.0.6']);
});

test('lease: counts what is free on ENIs that do not serve apart', (t) => {
  const pool = poolOf(
    sampleEni('eni-a', ['10.0.0.5']),
    sampleEni('eni-b', ['10.0.1.5', '10.0.1.6'], { attached: false }),
  );
  pool.lease({ key: 'a', families: V4, nowMs: 0 });
  const result = pool.lease({ key: 'b', families: V4, nowMs: 0 });
  t.like(result, { kind: 'exhausted', free: 0, unserved: 2, leased: 1 });
});

test('forceCool: takes a free address before a cooling one, then the one that cooled longest, on any ENI', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5', '10.0.0.6']), sampleEni('eni-b', ['10.0.1.5', '10.0.1.6']));
  for (const key of ['a', 'b', 'c']) pool.lease({ key, families: V4, nowMs: 0 });
  pool.release({ key: 'c', nowMs: 10, cooldownMs: 1000 });
  pool.release({ key: 'a', nowMs: 20, cooldownMs: 1000 });
  const free = pool.forceCool({ key: 'd', families: V4, nowMs: 30 });
  const forced = pool.forceCool({ key: 'e', families: V4, nowMs: 30 });
  const last = pool.forceCool({ key: 'f', families: V4, nowMs: 30 });
  t.deepEqual(
    [free, forced, last].map((result) => (result.kind === 'leased' ? result.forced : result)),
    [[], ['10.0.1.5'], ['10.0.0.5']],
  );
  t.is(pool.forceCool({ key: 'g', families: V4, nowMs: 30 }).kind, 'exhausted');
});

test('release: knows nothing of a key without lease, and says so', (t) => {
  t.deepEqual(poolOf(sampleEni('eni-a', ['10.0.0.5'])).release({ key: 'x', nowMs: 0, cooldownMs: 1 }), {
    kind: 'unknown',
  });
});

test('tick: frees an address at its deadline, not before', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5']));
  pool.lease({ key: 'a', families: V4, nowMs: 0 });
  pool.release({ key: 'a', nowMs: 0, cooldownMs: 100 });
  t.deepEqual(pool.tick(99), []);
  t.is(pool.counts().cooling, 1);
  t.deepEqual(pool.tick(100), ['10.0.0.5']);
  t.is(pool.counts().free, 1);
});

test('tick: keeps an address no longer than the cooldown when its deadline is of another clock', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5']));
  pool.lease({ key: 'a', families: V4, nowMs: 1_000_000 });
  pool.release({ key: 'a', nowMs: 1_000_000, cooldownMs: 100 });
  t.deepEqual(pool.tick(5), []);
  t.deepEqual(pool.tick(104), []);
  t.deepEqual(pool.tick(105), ['10.0.0.5']);
});

test('applySupply: keeps a leased address that left the supply until its lease ends and drops it after its cooldown', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5', '10.0.0.6']));
  pool.lease({ key: 'a', families: V4, nowMs: 0 });
  const change = pool.applySupply(sampleSupply([sampleEni('eni-a', [])], 2));
  t.deepEqual(change, { kind: 'applied', added: [], dropped: ['10.0.0.6'], missing: ['10.0.0.5'] });
  t.is(pool.state.addresses.get('10.0.0.5')?.state, 'leased');
  pool.release({ key: 'a', nowMs: 0, cooldownMs: 10 });
  t.is(pool.forceCool({ key: 'b', families: V4, nowMs: 5 }).kind, 'exhausted');
  pool.tick(10);
  t.is(pool.counts().total, 0);
});

test('applySupply: goes on with the cooldown of an address that left the supply and came back', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5']));
  pool.lease({ key: 'a', families: V4, nowMs: 0 });
  pool.release({ key: 'a', nowMs: 9_000, cooldownMs: 100 });
  pool.applySupply(sampleSupply([sampleEni('eni-a', [])], 2));
  pool.applySupply(sampleSupply([sampleEni('eni-a', ['10.0.0.5'])], 3));
  t.is(pool.lease({ key: 'b', families: V4, nowMs: 9_099 }).kind, 'exhausted');
  t.is(pool.lease({ key: 'b', families: V4, nowMs: 9_100 }).kind, 'leased');
});

test('applySupply: leaves a leased address on the ENI of its lease when the supply moved it, and moves it after', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5']), sampleEni('eni-b', []));
  pool.lease({ key: 'a', families: V4, nowMs: 0 });
  pool.applySupply(sampleSupply([sampleEni('eni-a', []), sampleEni('eni-b', ['10.0.0.5'])], 2));
  t.like(pool.state.addresses.get('10.0.0.5'), { eniId: 'eni-a', state: 'leased', supplyState: 'missing' });
  pool.release({ key: 'a', nowMs: 0, cooldownMs: 10 });
  t.like(pool.state.addresses.get('10.0.0.5'), { eniId: 'eni-b', state: 'cooling', supplyState: 'assigned' });
});

test('applySupply: gives nothing that is being released, and gives it again when that was taken back', (t) => {
  const releasing = sampleEni('eni-a', [], { addresses: [sampleAddress('10.0.0.5', { state: 'releasing' })] });
  const pool = poolOf(releasing);
  t.is(pool.forceCool({ key: 'a', families: V4, nowMs: 0 }).kind, 'exhausted');
  pool.applySupply(sampleSupply([sampleEni('eni-a', ['10.0.0.5'])], 2));
  t.is(pool.lease({ key: 'a', families: V4, nowMs: 0 }).kind, 'leased');
});

test('applySupply: distrusts a lower epoch', (t) => {
  const pool = new IpPool();
  pool.applySupply(sampleSupply([sampleEni('eni-a', ['10.0.0.5'])], 7));
  t.deepEqual(pool.applySupply(sampleSupply([], 6)), { kind: 'distrusted', epoch: 6, inForce: 7 });
  t.is(pool.counts().free, 1);
});

test('adopt: takes addresses that the supply does not know and reports a second owner', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5']));
  const first = sampleLease('one', 'eni-a', ['10.0.0.5']);
  t.deepEqual(pool.adopt([first, sampleLease('two', 'eni-z', ['10.9.9.9'])]), []);
  t.deepEqual(pool.adopt([first]), []);
  t.deepEqual(pool.adopt([sampleLease('three', 'eni-a', ['10.0.0.5'])]), [
    { ip: '10.0.0.5', owner: 'one/eth0', claimant: 'three/eth0' },
  ]);
  t.like(pool.counts(), { leased: 2, missing: 1, total: 2 });
});

test('withdraw: takes free addresses only, keeps them through a new supply, and restore gives them back', (t) => {
  const pool = poolOf(sampleEni('eni-a', ['10.0.0.5', '10.0.0.6']));
  pool.lease({ key: 'a', families: V4, nowMs: 0 });
  t.deepEqual(
    pool.withdraw(['10.0.0.5', '10.0.0.6']).map((address) => address.ip),
    ['10.0.0.6'],
  );
  pool.applySupply(sampleSupply([sampleEni('eni-a', ['10.0.0.5', '10.0.0.6'])], 2));
  t.is(pool.lease({ key: 'b', families: V4, nowMs: 0 }).kind, 'exhausted');
  t.deepEqual(
    pool.restore(['10.0.0.6']).map((address) => address.ip),
    ['10.0.0.6'],
  );
  t.is(pool.lease({ key: 'b', families: V4, nowMs: 0 }).kind, 'leased');
});
