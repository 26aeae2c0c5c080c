import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { baselineOf, withConfirmedOffers } from '../../../ipamd/decide/with-confirmed-offers.ts';

const STATUS: NodeEniConfigStatus = {
  supplyEpoch: 7,
  eniInfos: [
    {
      eniID: 'eni-a',
      mac: '52:54:00:00:00:01',
      state: 'Attached',
      addresses: [
        { ip: '10.0.0.5', assignmentID: 'a5', state: 'Assigned' },
        { ip: '10.0.0.6', assignmentID: 'a6', state: 'Releasing' },
      ],
    },
  ],
};
const OFFER = { releasableIPs: [{ ip: '10.0.0.5', assignmentID: 'a5' }], observedSupplyEpoch: 7 };

test('withConfirmedOffers: asks once, then waits for the answer', (t) => {
  const baseline = baselineOf(OFFER, STATUS, 1);
  const asked = withConfirmedOffers(OFFER, STATUS, baseline).status;
  const again = withConfirmedOffers(OFFER, asked, baseline);
  t.is(again.status, asked);
  t.is(again.spec.releasableIPs, undefined);
});

test('withConfirmedOffers: uses what the agent offers once it has written since', (t) => {
  const baseline = baselineOf(OFFER, STATUS, 1);
  const answered = { ...OFFER, observedSupplyEpoch: 8 };
  const seen = withConfirmedOffers(answered, { ...STATUS, supplyEpoch: 8 }, baseline);
  t.is(seen.spec, answered);
});

test('withConfirmedOffers: an agent that had seen a later epoch than the object has confirms nothing by that', (t) => {
  const spec = { ...OFFER, observedSupplyEpoch: 9 };
  const baseline = baselineOf(spec, STATUS, 1);
  const seen = withConfirmedOffers(spec, STATUS, baseline);
  t.is(seen.spec.releasableIPs, undefined);
  t.is(seen.status.supplyEpoch, 10);
});

test('withConfirmedOffers: asks nothing where no offer counts', (t) => {
  for (const releasableIPs of [
    [],
    [{ ip: '10.0.0.5', assignmentID: 'a4' }],
    [{ ip: '10.0.0.6', assignmentID: 'a6' }],
    [{ ip: '10.0.0.9', assignmentID: 'a9' }],
  ]) {
    const spec = { ...OFFER, releasableIPs };
    const seen = withConfirmedOffers(spec, STATUS, baselineOf(spec, STATUS, 1));
    t.is(seen.status, STATUS);
    t.is(seen.spec, spec);
  }
});
