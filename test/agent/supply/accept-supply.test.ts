import test from 'ava';
import { applySupply } from '../../../agent/pool/apply-supply.ts';
import { adopt, counts } from '../../../agent/pool/pool.ts';
import { EMPTY_POOL } from '../../../agent/pool/pool-state.ts';
import { withheld } from '../../../agent/supply/accept-supply.ts';
import { sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';

test('withheld: gives nothing, knows every address, and gives way to the supply itself', (t) => {
  const supply = sampleSupply([sampleEni('eni-a', ['10.0.0.1', '10.0.0.2'])], 7);
  const leased = sampleLease('c1', 'eni-a', ['10.0.0.1']);
  const held = adopt(applySupply(EMPTY_POOL, withheld(supply)).state, [leased]).state;
  t.like(counts(held), { leased: 1, withdrawn: 1, free: 0 });
  t.is(held.addresses.get('10.0.0.1')?.assignmentId, 'as-10.0.0.1');
  t.like(counts(applySupply(held, supply).state), { leased: 1, withdrawn: 0, free: 1 });
});
