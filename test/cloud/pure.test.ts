import test from 'ava';
import fc from 'fast-check';
import { batchesOf, countsOf } from '../../cloud/batches.ts';
import { allowProbe, type Breakers, isBreakerOpen, resetBreaker, tripBreaker } from '../../cloud/circuit-breaker.ts';
import type { Eni, EniGoal, EniIp } from '../../cloud/cloud.ts';
import { eniLimitsByCores } from '../../cloud/eni-limits.ts';
import { evaluateEniGoal, type GoalState } from '../../cloud/evaluate-goal.ts';
import { timeOf } from '../../cloud/tencent/decode/fields.ts';
import { assertLaw } from '../support/law.ts';

test('batchesOf: keeps every item in order, none larger than the size', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.array(fc.integer()), fc.integer({ min: 1, max: 20 }), (items, size) => {
      const batches = batchesOf(items, size);
      return (
        JSON.stringify(batches.flat()) === JSON.stringify(items) &&
        batches.every((batch) => batch.length <= size && batch.length > 0) &&
        countsOf(items.length, size).join() === batches.map((batch) => batch.length).join()
      );
    }),
  );
});

test("eniLimitsByCores: is the product's table, the smaller line between two", (t) => {
  const pods = (cores: number) => {
    const { secondaryEnis, secondaryIpsPerEni } = eniLimitsByCores(cores);
    return secondaryEnis * secondaryIpsPerEni;
  };
  t.deepEqual([1, 2, 6, 7, 8, 10, 11, 12, 64].map(pods), [5, 27, 27, 27, 95, 95, 95, 203, 203]);
});

test('breakers: open for longer with each trip in a row, shut again by a success, apart from each other', (t) => {
  let breakers: Breakers = new Map();
  const openMs = [1, 2, 3].map(() => {
    breakers = tripBreaker(breakers, 'subnet/a', 30_000, 0);
    return breakers.get('subnet/a')?.openUntilMs;
  });
  t.deepEqual(openMs, [30_000, 60_000, 120_000]);
  t.true(isBreakerOpen(breakers, 'subnet/a', 119_999));
  t.false(isBreakerOpen(breakers, 'subnet/a', 120_000));
  t.false(isBreakerOpen(breakers, 'subnet/b', 0));
  t.false(isBreakerOpen(resetBreaker(breakers, 'subnet/a'), 'subnet/a', 0));
  for (let trip = 0; trip < 50; trip++) breakers = tripBreaker(breakers, 'subnet/a', 30_000, 0);
  t.is(breakers.get('subnet/a')?.openUntilMs, 600_000);
});

test("timeOf: reads the cloud's time as China's", (t) => {
  t.is(timeOf('2026-11-21 17:43:00'), Date.UTC(2026, 10, 21, 9, 43, 0));
  t.is(timeOf('2026-11-21T09:43:00Z'), Date.UTC(2026, 10, 21, 9, 43, 0));
  t.is(timeOf('soon'), 0);
});

const ip = (state: EniIp['state']): EniIp => ({ ip: '10.0.0.9', isPrimary: false, state });
const ENI: Eni = {
  eniId: 'eni-1',
  name: '',
  description: '',
  mac: '',
  vpcId: 'vpc-1',
  subnetId: 'subnet-1',
  zone: 'z',
  isPrimary: false,
  state: 'AVAILABLE',
  ips: [],
  securityGroupIds: [],
  tags: {},
  createdAtMs: 0,
};
const HERE = { instanceId: 'ins-1', deviceIndex: 1 };
const ELSEWHERE = { instanceId: 'ins-2', deviceIndex: 1 };
const judged = test.macro((t, goal: EniGoal, change: Partial<Eni> | undefined, wanted: GoalState) => {
  t.is(evaluateEniGoal(goal, change === undefined ? undefined : { ...ENI, ...change }), wanted);
});
const CREATE: EniGoal = { kind: 'created', eniId: 'eni-1', ips: ['10.0.0.9'] };
const ATTACH: EniGoal = { kind: 'attached', eniId: 'eni-1', instanceId: 'ins-1' };
const ASSIGN: EniGoal = { kind: 'ips-assigned', eniId: 'eni-1', ips: ['10.0.0.9'] };
const UNASSIGN: EniGoal = { kind: 'ips-unassigned', eniId: 'eni-1', ips: ['10.0.0.9'] };

test('evaluateEniGoal: attached here', judged, ATTACH, { attachment: HERE }, 'reached');
test('evaluateEniGoal: on its way here', judged, ATTACH, { attachment: HERE, state: 'ATTACHING' }, 'moving');
test('evaluateEniGoal: attached elsewhere', judged, ATTACH, { attachment: ELSEWHERE }, 'still');
test('evaluateEniGoal: attached nowhere', judged, ATTACH, {}, 'still');
test('evaluateEniGoal: to attach, gone', judged, ATTACH, undefined, 'still');
test('evaluateEniGoal: detached', judged, { kind: 'detached', eniId: 'eni-1' }, {}, 'reached');
test('evaluateEniGoal: still attached', judged, { kind: 'detached', eniId: 'eni-1' }, { attachment: HERE }, 'still');
test('evaluateEniGoal: deleted', judged, { kind: 'deleted', eniId: 'eni-1' }, undefined, 'reached');
test('evaluateEniGoal: created', judged, CREATE, { ips: [ip('AVAILABLE')] }, 'reached');
test('evaluateEniGoal: created, its address taken off', judged, CREATE, {}, 'still');
test('evaluateEniGoal: created, deleted', judged, CREATE, undefined, 'still');
test('evaluateEniGoal: address pending', judged, ASSIGN, { ips: [ip('PENDING')] }, 'moving');
test('evaluateEniGoal: address there', judged, ASSIGN, { ips: [ip('AVAILABLE')] }, 'reached');
test('evaluateEniGoal: address not there', judged, ASSIGN, {}, 'still');
test('evaluateEniGoal: address leaving', judged, UNASSIGN, { ips: [ip('DELETING')] }, 'moving');
test('evaluateEniGoal: address staying', judged, UNASSIGN, { ips: [ip('AVAILABLE')] }, 'still');
test('evaluateEniGoal: address left', judged, UNASSIGN, {}, 'reached');

test('allowProbe: lets the next call try at once, and a failure then opens for as long as the next trip would', (t) => {
  const twice = tripBreaker(tripBreaker(new Map(), 'vpc-enis', 1_000, 0), 'vpc-enis', 1_000, 1_000);
  const eased = allowProbe(twice, 'vpc-enis', 1_500);
  t.true(isBreakerOpen(twice, 'vpc-enis', 1_500));
  t.false(isBreakerOpen(eased, 'vpc-enis', 1_500));
  const again = tripBreaker(eased, 'vpc-enis', 1_000, 1_500);
  t.true(isBreakerOpen(again, 'vpc-enis', 5_499));
  t.false(isBreakerOpen(again, 'vpc-enis', 5_500));
  t.is(allowProbe(new Map(), 'vpc-enis', 0).size, 0);
});
