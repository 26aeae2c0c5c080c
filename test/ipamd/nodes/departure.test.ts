import test from 'ava';
import fc from 'fast-check';
import { type DepartureEvidence, type DepartureFacts, weighDeparture } from '../../../ipamd/nodes/decide-leaving.ts';
import { decideBrake, ReleaseBrake } from '../../../kube/release-brake.ts';
import { assertLaw } from '../../support/law.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const HOUR_MS = 3_600_000;

const THERE: DepartureFacts = {
  isNodeAbsent: false,
  isAbsentWhenRead: undefined,
  isReplaced: false,
  isNodeReady: false,
  presence: 'running',
  isInstanceUnlisted: false,
  isDescriptionDue: false,
  isBegun: false,
  isConfirmed: false,
  hasNodes: true,
};
const weigh = test.macro((t, change: Partial<DepartureFacts>, want: DepartureEvidence) =>
  t.is(weighDeparture({ ...THERE, ...change }), want),
);
const ABSENT = { isNodeAbsent: true, isAbsentWhenRead: true };
const UNLISTED = { presence: 'gone', isInstanceUnlisted: true, isDescriptionDue: true } as const;
test('weighDeparture: a node that is there', weigh, {}, 'none');
test('weighDeparture: only the lists lack it', weigh, { ...ABSENT, isAbsentWhenRead: false }, 'contradicted');
test('weighDeparture: nobody answered the read', weigh, { ...ABSENT, isAbsentWhenRead: undefined }, 'contradicted');
test('weighDeparture: lists and read lack it, its instance runs', weigh, ABSENT, 'one-source');
test('weighDeparture: the same, the release began', weigh, { ...ABSENT, isBegun: true }, 'enough');
test(
  'weighDeparture: the release began, and then all Nodes went',
  weigh,
  { ...ABSENT, isBegun: true, hasNodes: false },
  'one-source',
);
test('weighDeparture: a person confirmed it', weigh, { ...ABSENT, isConfirmed: true, hasNodes: false }, 'enough');
test('weighDeparture: the cloud has still to answer', weigh, { ...ABSENT, isDescriptionDue: true }, 'pending');
test('weighDeparture: Node and instance are gone', weigh, { ...ABSENT, ...UNLISTED }, 'enough');
test(
  'weighDeparture: neither the API server nor the cloud lists anything',
  weigh,
  { ...ABSENT, ...UNLISTED, hasNodes: false },
  'one-source',
);
test('weighDeparture: the Node is gone, its instance is stopped', weigh, { ...ABSENT, presence: 'stopped' }, 'enough');
test('weighDeparture: the cloud alone lacks the instance', weigh, UNLISTED, 'one-source');
test('weighDeparture: the same, and the kubelet reports', weigh, { ...UNLISTED, isNodeReady: true }, 'none');
test('weighDeparture: the cloud says that it is being destroyed', weigh, { presence: 'gone' }, 'enough');
test('weighDeparture: another instance has the name', weigh, { isReplaced: true }, 'enough');

const brake = test.macro((t, [configCount, nodeCount, begunCount, percent]: readonly number[], want: string) => {
  const facts = { configCount: configCount ?? 0, nodeCount: nodeCount ?? 0, begunCount: begunCount ?? 0 };
  const decision = decideBrake({ ...facts, percent: percent ?? 0 });
  const got: string = decision.kind === 'held' ? decision.reason : decision.kind;
  t.is(got, want);
});
test('decideBrake: three of a small cluster', brake, [5, 1, 2, 10], 'allowed');
test('decideBrake: a fourth of a small cluster', brake, [5, 1, 3, 10], 'ShareUsed');
test('decideBrake: a tenth of a large cluster', brake, [1_000, 900, 99, 10], 'allowed');
test('decideBrake: more than a tenth', brake, [1_000, 900, 100, 10], 'ShareUsed');
test('decideBrake: none without a Node', brake, [5, 0, 0, 100], 'NoNodes');
test('decideBrake: none with 0 percent', brake, [5, 4, 0, 0], 'ShareUsed');

test('ReleaseBrake: allows no more than the share in any hour, across restarts', async (t) => {
  const arbStep = fc.record({ node: fc.nat(99), waitS: fc.nat(1_200), isRestart: fc.boolean() });
  const arbRun = fc.record({ percent: fc.nat(100), steps: fc.array(arbStep, { maxLength: 80 }) });
  await assertLaw(t, (t) =>
    fc.asyncProperty(arbRun, async ({ percent, steps }) => {
      const clock = new VirtualClock();
      const marks = new Map<string, string>();
      const begunMs: number[] = [];
      let subject = new ReleaseBrake(clock, percent);
      for (const { node, waitS, isRestart } of steps) {
        await clock.advance(waitS * 1_000);
        if (isRestart) subject = new ReleaseBrake(clock, percent);
        const name = `n${node}`;
        if (marks.has(name)) continue;
        const configs = Array.from({ length: 100 }, (_, at) => ({ name: `n${at}`, begunAt: marks.get(`n${at}`) }));
        if ((await subject.request(name, 50, configs)).kind !== 'allowed') continue;
        marks.set(name, new Date(clock.nowMs()).toISOString());
        begunMs.push(clock.monotonicMs());
      }
      const limit = percent === 0 ? 0 : Math.max(3, percent);
      for (const since of begunMs)
        t.true(begunMs.filter((ms) => ms >= since && ms < since + HOUR_MS).length <= limit, `since ${since}`);
    }),
  );
});
