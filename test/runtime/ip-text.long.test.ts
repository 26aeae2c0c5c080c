import test from 'ava';
import { seedOf } from '../../sim/support/seed.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { hasIpv4Form, printsOf, randomAddress } from './address-oracles.ts';

const ADDRESSES = 1_000_000;

test('address texts: a million are read and printed alike by ours, Node and ip-address', (t) => {
  t.timeout(600_000);
  const random = seededRandom(seedOf('address texts'));
  const seen = { refused: 0, compared: 0, withIpv4Form: 0 };
  for (let index = 0; index < ADDRESSES; index++) {
    const text = randomAddress(random);
    const { own, library, node } = printsOf(text);
    const isSpecial = own !== undefined && hasIpv4Form(own);
    if (typeof node !== typeof own || (!isSpecial && (library !== own || node !== own))) {
      t.fail(JSON.stringify({ text, own, library, node }));
    }
    seen[own === undefined ? 'refused' : isSpecial ? 'withIpv4Form' : 'compared'] += 1;
  }
  t.log(JSON.stringify(seen));
  t.true(seen.compared > ADDRESSES / 2 && seen.refused > ADDRESSES / 100);
});
