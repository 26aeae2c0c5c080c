import test from 'ava';
import fc from 'fast-check';
import { EventHub, type Subscription } from '../../../agent/recorder/event-hub.ts';
import type { EventMessage } from '../../../agent/recorder/event-message.ts';
import { assertLaw } from '../../support/law.ts';

/** A reader that takes a few events and then no more until it is told to go on. */
class Reader {
  readonly got: EventMessage[] = [];
  room: number;
  isEnded = false;
  readonly place: Subscription;

  constructor(hub: EventHub, room = Number.POSITIVE_INFINITY, kinds: readonly number[] = []) {
    this.room = room;
    this.place = hub.watch({
      kinds: new Set(kinds),
      write: (event) => {
        this.got.push(event);
        this.room--;
        return this.room > 0;
      },
      end: () => {
        this.isEnded = true;
      },
    });
  }

  read(count: number): void {
    this.room = count;
    this.place.ready();
  }
}

test('EventHub: makes no event when nobody watches, or nobody watches for its kind', (t) => {
  const hub = new EventHub();
  const never = (): never => t.fail('made for nobody') as never;
  hub.publish(1, never);
  const reader = new Reader(hub, 9, [2]);
  hub.publish(1, never);
  hub.publish(2, () => ({ text: 'two' }));
  t.deepEqual(reader.got, [{ text: 'two' }]);
  reader.place.close();
  hub.publish(2, never);
  t.is(hub.watchers, 0);
});

test('EventHub: makes an event once for all who watch', (t) => {
  const hub = new EventHub();
  const readers = [new Reader(hub), new Reader(hub), new Reader(hub)];
  let made = 0;
  hub.publish(1, () => ({ durationUs: ++made }));
  t.is(made, 1);
  t.true(readers.every(({ got }) => got.length === 1));
});

test('EventHub: a slow watcher loses the oldest, is told how many, and keeps nobody waiting', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.record({ told: fc.integer({ min: 0, max: 20 }), read: fc.integer({ min: 1, max: 6 }) }), {
          maxLength: 20,
        }),
        (capacity, rounds) => {
          const hub = new EventHub(capacity);
          const slow = new Reader(hub, 1);
          const quick = new Reader(hub);
          let number = 0;
          for (const { told, read } of rounds) {
            for (let count = 0; count < told; count++) hub.publish(1, () => ({ durationUs: ++number }));
            slow.read(read);
          }
          t.deepEqual(
            quick.got.map(({ durationUs }) => durationUs),
            Array.from({ length: number }, (_, index) => index + 1),
          );
          // Each that it gets says how many are missing right before it, and the order is kept.
          let last = 0;
          for (const { durationUs = 0, dropped = 0 } of slow.got) {
            t.is(durationUs, last + dropped + 1);
            last = durationUs;
          }
          t.true(number - last <= capacity + slow.got.length, 'what is not read yet waits within the bound');
          slow.read(Number.POSITIVE_INFINITY);
          const total = slow.got.reduce((sum, { dropped = 0 }) => sum + dropped + 1, 0);
          t.is(total, number, 'read or told as lost, each is accounted for');
        },
      ),
    { numRuns: 300 },
  );
});

test('EventHub: close ends all who watch, and those who come later at once', (t) => {
  const hub = new EventHub();
  const before = new Reader(hub);
  hub.close();
  const after = new Reader(hub);
  t.true(before.isEnded && after.isEnded);
  t.is(hub.watchers, 0);
  hub.publish(1, () => t.fail('told after the end') as never);
  before.place.close();
  before.place.ready();
});
