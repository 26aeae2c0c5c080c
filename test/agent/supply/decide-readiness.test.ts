import test from 'ava';
import { decideReadiness } from '../../../agent/supply/decide-readiness.ts';
import { type ObservedNec, UNREADABLE } from '../../../agent/supply/publication.ts';

const READY = ['tke.cloud.tencent.com/eni-ip'];

type Change = Partial<ObservedNec['spec']> & { readonly supplyEpoch?: number };

function necOf({ supplyEpoch = 7, ...spec }: Change = {}): ObservedNec {
  return {
    spec: { desired: 12, releasable: [], observedEpoch: 7, readyResources: READY, life: 'mine', ...spec },
    supplyEpoch,
    addresses: new Map(),
  };
}

const decides = test.macro((t, change: Change, resources: readonly string[], want: unknown) => {
  t.deepEqual(
    decideReadiness({ nec: necOf(change), readyResources: resources, life: 'mine', epochInForce: 7 }),
    want as never,
  );
});

test('decideReadiness: nothing when the object has it', decides, {}, READY, undefined);
test('decideReadiness: readiness', decides, { readyResources: [] }, READY, { readyResources: READY, life: 'mine' });
test('decideReadiness: the end of it', decides, {}, [], { readyResources: [], life: 'mine' });
test('decideReadiness: its journal', decides, { life: 'theirs' }, READY, { readyResources: READY, life: 'mine' });
test('decideReadiness: not the epoch that it follows', decides, { observedEpoch: 3 }, READY, undefined);
test('decideReadiness: nor one that is still to come', decides, { supplyEpoch: 9 }, READY, undefined);
test(
  'decideReadiness: that a higher epoch was in force than a restored object has',
  decides,
  { supplyEpoch: 5, observedEpoch: 5 },
  READY,
  { readyResources: READY, life: 'mine', observedEpoch: 7 },
);
test('decideReadiness: that once', decides, { supplyEpoch: 5, observedEpoch: 7 }, READY, undefined);
test(
  'decideReadiness: nothing of an epoch that cannot be read',
  decides,
  { supplyEpoch: UNREADABLE, observedEpoch: 5 },
  READY,
  undefined,
);
