import test from 'ava';
import type { Lease } from '../../../agent/journal/lease.ts';
import type { ClaimMark, Supply } from '../../../agent/journal/supply.ts';
import { retainEnisInUse } from '../../../agent/supply/retain-enis-in-use.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';

const WEB_0 = { namespace: 'ns', name: 'web-0' };
const IP = '10.0.0.1';

/** A supply of one ENI with one address, marked or not; without mark argument: without the address. */
function listing(mark?: ClaimMark | 'unmarked', epoch = 2): Supply {
  const address = sampleAddress(IP, mark === undefined || mark === 'unmarked' ? {} : { claim: mark });
  return sampleSupply([sampleEni('eni-a', [], { addresses: mark === undefined ? [] : [address] })], epoch);
}

const lease = (podUid = 'u1'): Lease => sampleLease('c1', 'eni-a', [IP], { podUid });
const TAKEN = [{ ip: IP, leaseKey: 'c1/eth0' }];
const taken: Supply = { ...listing(), takenOver: TAKEN };

const row = test.macro((t, before: Supply, next: Supply, leases: readonly Lease[], isTaken: boolean) => {
  t.deepEqual(retainEnisInUse(next, before, leases).takenOver, isTaken ? TAKEN : undefined);
});

const mine = { ...WEB_0, uid: 'u1' };
test(
  'retainEnisInUse: a kept address that goes under its sandbox was taken over',
  row,
  listing(mine),
  listing(),
  [lease()],
  true,
);
test('retainEnisInUse: with whatever Pod its mark named', row, listing(WEB_0), listing(), [lease()], true);
test('retainEnisInUse: an address of the pool never is', row, listing('unmarked'), listing(), [lease()], false);
test('retainEnisInUse: nor one that no sandbox has', row, listing(mine), listing(), [], false);
test(
  'retainEnisInUse: nor one of another uid that is still here',
  row,
  listing(mine),
  listing({ ...WEB_0, uid: 'u2' }),
  [lease()],
  false,
);
test('retainEnisInUse: it stays so from supply to supply', row, taken, listing(), [lease()], true);
test(
  'retainEnisInUse: it stays so for another Pod of its name',
  row,
  taken,
  listing({ ...WEB_0, uid: 'u2' }),
  [lease()],
  true,
);
test('retainEnisInUse: and without a mark', row, taken, listing('unmarked'), [lease()], true);
test('retainEnisInUse: and for a Pod of which no uid is known', row, taken, listing(mine), [lease('')], true);
test('retainEnisInUse: until its own mark is back', row, taken, listing(mine), [lease()], false);
test('retainEnisInUse: or its sandbox is gone', row, taken, listing(), [], false);
test(
  'retainEnisInUse: it is the sandbox’s, and not the next one’s',
  row,
  taken,
  listing(),
  [sampleLease('c2', 'eni-a', [IP])],
  false,
);

/** A supply with one whole ENI, marked or not; without mark argument: without the ENI. */
function listingWhole(mark?: ClaimMark | 'unmarked'): Supply {
  const { mac, primary } = sampleEni('eni-d', []);
  const claim = mark === undefined || mark === 'unmarked' ? {} : { claim: mark };
  const own = primary.map((one) => ({ ...one, ip: IP }));
  const eni = { eniId: 'eni-d', mac, primary: own, assignmentId: 'as-d', state: 'attached', draining: false } as const;
  const enis = mark === undefined ? [] : [{ ...eni, ...claim }];
  return { ...sampleSupply([], 2), direct: { enis, warm: { min: 0, max: 0 } } };
}

const direct = sampleLease('c1', 'eni-d', [IP], { podUid: 'u1', plugin: 'direct-eni' });
const gone: Supply = { ...listingWhole(), takenOver: TAKEN };
test('retainEnisInUse: so is that of a kept ENI', row, listingWhole(mine), listingWhole(), [direct], true);
test('retainEnisInUse: for good, also after a restart', row, gone, listingWhole(), [direct], true);
test('retainEnisInUse: until that ENI is back', row, gone, listingWhole(mine), [direct], false);
test('retainEnisInUse: but of no ENI of the pool', row, listingWhole('unmarked'), listingWhole(), [direct], false);

test('retainEnisInUse: keeps the ENI of a sandbox whose address was taken over with it', (t) => {
  const next = retainEnisInUse(sampleSupply([], 3), listing(mine), [lease()]);
  t.deepEqual(next.takenOver, TAKEN);
  t.like(next.enis[0], { eniId: 'eni-a', attached: false, draining: true, addresses: [] });
});

test('retainEnisInUse: leaves alone what nothing is missing from', (t) => {
  const next = listing(mine);
  t.is(retainEnisInUse(next, listing(mine), [lease()]), next);
});

test('retainEnisInUse: an address that the node refuses was taken over by nobody', (t) => {
  t.is(retainEnisInUse(listing(), listing(mine), [lease()], listing(mine)).takenOver, undefined);
});
