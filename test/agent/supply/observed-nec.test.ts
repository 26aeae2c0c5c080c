import test from 'ava';
import { notReadyReasonOf } from '../../../agent/supply/observed-nec.ts';

const ready = (fields: object) => ({
  status: {
    conditions: [
      { type: 'Valid', status: 'False' },
      { type: 'Ready', ...fields },
    ],
  },
});

for (const [object, told] of [
  [
    ready({ status: 'False', reason: 'SubnetExhausted', message: 'no free addresses' }),
    'SubnetExhausted: no free addresses',
  ],
  [ready({ status: 'False', reason: 'CallUnderWay' }), 'CallUnderWay'],
  [ready({ status: 'Unknown' }), undefined],
  [ready({ status: 'True', reason: 'SupplyMet' }), undefined],
  [{ status: { conditions: 'nonsense' } }, undefined],
  [{}, undefined],
] as const)
  test(`notReadyReasonOf: says ${told ?? 'nothing'} of ${JSON.stringify(object)}`, (t) => {
    t.is(notReadyReasonOf(object), told);
  });
