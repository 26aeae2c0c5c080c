import test from 'ava';
import fc from 'fast-check';
import { ReleaseRecord } from '../../kube/release-record.ts';
import { assertLaw } from '../support/law.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const HOUR_MS = 3_600_000;
const SLOT_MS = 300_000;

test('law: a record counts each release for an hour, and for five minutes more at most, from process to process', async (t) => {
  const step = fc.record({ waitS: fc.nat(1_500), begins: fc.nat(3), isHandedOver: fc.boolean() });
  const property = (inner: typeof t) =>
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = new VirtualClock();
      let subject = new ReleaseRecord(clock);
      const begunMs: number[] = [];
      for (const { waitS, begins, isHandedOver } of steps) {
        await clock.advance(waitS * 1_000);
        for (let n = 0; n < begins; n++) {
          subject.add();
          begunMs.push(clock.monotonicMs());
        }
        if (isHandedOver) {
          const text = subject.render();
          inner.true(text.length < 500, text);
          subject = new ReleaseRecord(clock);
          subject.take(text);
        }
        const nowMs = clock.monotonicMs();
        inner.true(subject.count >= begunMs.filter((ms) => ms > nowMs - HOUR_MS).length);
        inner.true(subject.count <= begunMs.filter((ms) => ms > nowMs - HOUR_MS - SLOT_MS).length);
      }
    });
  await assertLaw(t, property);
});

const read = test.macro((t, text: string | undefined, count: number) => {
  const clock = new VirtualClock();
  const subject = new ReleaseRecord(clock);
  subject.take(text);
  t.is(subject.count, count);
});
const SLOT = new Date(Math.ceil(new VirtualClock().nowMs() / SLOT_MS) * SLOT_MS).toISOString().replace('.000Z', 'Z');
const LATER = new Date(Date.parse(SLOT) + 40 * 60_000).toISOString().replace('.000Z', 'Z');
test('ReleaseRecord: nothing', read, undefined, 0);
test('ReleaseRecord: no JSON', read, 'three', 0);
test('ReleaseRecord: a list', read, '[3]', 0);
test('ReleaseRecord: a slot', read, JSON.stringify({ [SLOT]: 3 }), 3);
test('ReleaseRecord: a slot of a clock that is ahead', read, JSON.stringify({ [LATER]: 3 }), 3);
test('ReleaseRecord: an old slot', read, JSON.stringify({ '2001-01-01T00:00:00Z': 3, [SLOT]: 1 }), 1);
test('ReleaseRecord: no numbers', read, JSON.stringify({ [SLOT]: -1, [LATER]: '3', soon: 4 }), 0);
