import test from 'ava';
import {
  decideExclusivePublication,
  type ExclusivePublicationInput,
} from '../../../agent/exclusive/decide-exclusive-publication.ts';
import { ExclusiveEniPool } from '../../../agent/exclusive/exclusive-eni-pool.ts';
import type { ExclusiveEni } from '../../../agent/exclusive/exclusive-pool.ts';
import type { Offer } from '../../../agent/journal/journal-content.ts';

function eniOf(eniId: string, more: Partial<ExclusiveEni> = {}): ExclusiveEni {
  return {
    ...{ eniId, mac: '02:00:00:00:00:01', assignmentId: `att-${eniId}` },
    primary: [{ ip: `10.0.0.${eniId}`, family: 4, gateway: '10.0.0.254', subnetCidr: '10.0.0.0/24' }],
    ...{ supplyState: 'attached', draining: false, use: 'free', offered: false },
    ...more,
  };
}

const offerOf = (eniId: string): Offer => ({
  ...{ ip: `10.0.0.${eniId}`, family: 4, eniId, assignmentId: `att-${eniId}`, isWholeEni: true },
});

function decide(enis: readonly ExclusiveEni[], more: Partial<ExclusivePublicationInput> = {}) {
  return decideExclusivePublication({
    pool: new Map(enis.map((eni) => [eni.eniId, eni])),
    offers: [],
    observed: {
      desired: undefined,
      releasable: [],
      enis: new Map(enis.map(({ eniId, assignmentId }) => [eniId, { assignmentId, isLeaving: false }])),
    },
    warm: { min: 1, max: 1, limit: 4 },
    ...{ waiting: 0, nowMs: 0, isCurrent: true, mayOffer: true, isIntervalOver: true },
    ...more,
  });
}

test('decideExclusivePublication: wants what is in use, waits or cools, and the warm target, within the limit', (t) => {
  const used = eniOf('1', { use: 'leased', leaseKey: 'k' });
  const cooling = eniOf('2', { use: 'cooling', coolUntilMs: 9 });
  t.is(decide([]).spec?.desired, 1);
  t.is(decide([used]).spec?.desired, 2);
  t.is(decide([used, cooling], { waiting: 1 }).spec?.desired, 4);
  t.is(decide([used, cooling], { waiting: 9 }).spec?.desired, 4);
  const marked = eniOf('3', { claim: { namespace: 'd', name: 'w', uid: 'u' } });
  t.is(decide([used, marked]).spec?.desired, 2, 'what is marked is outside');
  t.is(decide([used, cooling, marked], { waiting: 9 }).spec?.desired, 3, 'but takes its place of the limit');
});

test('decideExclusivePublication: says nothing for a node that has none and may have none', (t) => {
  t.deepEqual(decide([], { warm: undefined }).spec, undefined);
  t.false(decide([], { warm: undefined }).isDue);
});

test('decideExclusivePublication: offers surplus one at a time, at its pace', (t) => {
  const enis = [eniOf('1', { freedAtMs: 5 }), eniOf('2', { freedAtMs: 3 }), eniOf('3', { freedAtMs: 9 })];
  const first = decide(enis);
  t.deepEqual(
    first.toOffer.map(({ eniId }) => eniId),
    ['2'],
  );
  t.deepEqual(first.spec?.releasable, [{ eniId: '2', assignmentId: 'att-2' }]);
  t.true(first.isPaced && first.isLeft);
  t.deepEqual(decide(enis, { isIntervalOver: false }).toOffer, []);
  t.deepEqual(decide(enis, { isCurrent: false }).toOffer, []);
  t.deepEqual(decide(enis, { mayOffer: false }).toOffer, []);
});

test('decideExclusivePublication: offers at once what drains, is beyond the limit, or is marked for no Pod', (t) => {
  const [draining, orphan] = [eniOf('1', { draining: true }), eniOf('2', { claim: { namespace: 'd', name: 'w' } })];
  const idsOf = (enis: readonly ExclusiveEni[], more: Partial<ExclusivePublicationInput> = {}) =>
    decide(enis, { isIntervalOver: false, ...more }).toOffer.map(({ eniId }) => eniId);
  t.deepEqual(idsOf([draining, orphan]), ['1', '2']);
  t.deepEqual(idsOf([eniOf('3'), eniOf('4')], { warm: { min: 1, max: 5, limit: 1 } }), ['3']);
  t.deepEqual(idsOf([{ ...draining, use: 'leased', leaseKey: 'k' }]), []);
});

test('decideExclusivePublication: takes out an offer of an ENI that a Pod has', (t) => {
  const enis = [eniOf('1', { use: 'leased', leaseKey: 'k' })];
  const observed = {
    desired: 2,
    releasable: [{ eniId: '1', assignmentId: 'att-1' }],
    enis: new Map([['1', { assignmentId: 'att-1', isLeaving: false }]]),
  };
  const warm = { min: 0, max: 0 };
  const { spec, isDue, toRestore } = decide(enis, { offers: [offerOf('1')], observed, warm });
  t.deepEqual(spec?.releasable, []);
  t.true(isDue);
  t.deepEqual(toRestore, [offerOf('1')]);
});

test('setOffered: holds of an ENI whose cooldown is on record still, and gives it to nobody', (t) => {
  const supply = { eniId: '1', mac: '02:00:00:00:00:01', primary: eniOf('1').primary, assignmentId: 'att-1' };
  const pool = new ExclusiveEniPool();
  pool.applySupply([{ ...supply, state: 'attached', draining: false }]);
  const rest = { freedAtMs: 0, coolUntilMs: 10, cooldownMs: 10 };
  pool.adoptCooldowns([{ ...offerOf('1'), ...rest, isWholeEni: true }]);
  pool.setOffered([offerOf('1')], true);
  pool.tick(20);
  const pod = { podNamespace: 'd', podName: 'a', podUid: 'u' };
  const request = { key: 'c/eth0', ...pod, needsClaim: false, present: new Set(['1']), nowMs: 20, mayForce: true };
  t.is(pool.lease(request).kind, 'exhausted');
});

test('decideExclusivePublication: takes offers back when more is wanted, or their mark names a Pod', (t) => {
  const offered = eniOf('1', { offered: true });
  const observed = {
    desired: 0,
    releasable: [{ eniId: '1', assignmentId: 'att-1' }],
    enis: new Map([['1', { assignmentId: 'att-1', isLeaving: false }]]),
  };
  const back = decide([offered], { offers: [offerOf('1')], observed, waiting: 1 });
  t.deepEqual(back.toRestore, [offerOf('1')]);
  t.deepEqual(back.spec?.releasable, []);
  const leaving = { ...observed, enis: new Map([['1', { assignmentId: 'att-1', isLeaving: true }]]) };
  t.deepEqual(decide([offered], { offers: [offerOf('1')], observed: leaving, waiting: 1 }).toRestore, []);
  const gone = decide([], { offers: [offerOf('1')], observed: { ...observed, enis: new Map() } });
  t.deepEqual(gone.toErase, [offerOf('1')]);
  const marked = eniOf('1', { offered: true, claim: { namespace: 'd', name: 'w', uid: 'u' } });
  t.deepEqual(decide([marked], { offers: [offerOf('1')], observed, warm: { min: 0, max: 0 } }).toRestore, [
    offerOf('1'),
  ]);
});

test('decideExclusivePublication: writes an offer first that no write has told of yet, before it takes it back', (t) => {
  const offered = eniOf('1', { offered: true });
  const observed = {
    desired: 2,
    releasable: [],
    enis: new Map([['1', { assignmentId: 'att-1', isLeaving: false }]]),
  };
  const fence = decide([offered], { offers: [offerOf('1')], observed, waiting: 1 });
  t.deepEqual(fence.toRestore, []);
  t.deepEqual(fence.spec?.releasable, [{ eniId: '1', assignmentId: 'att-1' }]);
  t.true(fence.isDue);
});

test('decideExclusivePublication: an offer that stands in the object and not on record counts', (t) => {
  const observed = {
    desired: 1,
    releasable: [{ eniId: '1', assignmentId: 'att-1' }],
    enis: new Map([['1', { assignmentId: 'att-1', isLeaving: false }]]),
  };
  t.deepEqual(decide([eniOf('1')], { observed }).toOffer, [offerOf('1')]);
});
