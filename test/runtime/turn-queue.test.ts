import test from 'ava';
import fc from 'fast-check';
import { TurnQueue } from '../../runtime/turn-queue.ts';
import { assertLaw } from '../support/law.ts';

type Item = { readonly lane: string; readonly isUrgent: boolean; readonly serial: number };

const arbLane = fc.constantFrom('a', 'b', 'c', 'd');
const arbItems = fc.array(fc.record({ lane: arbLane, isUrgent: fc.boolean() }), { maxLength: 100 });

function fill(items: readonly Omit<Item, 'serial'>[]): TurnQueue<Item> {
  const queue = new TurnQueue<Item>();
  for (const [serial, item] of items.entries()) queue.add({ ...item, serial }, item.lane, item.isUrgent);
  return queue;
}

function drain(queue: TurnQueue<Item>): readonly Item[] {
  const taken: Item[] = [];
  for (let item = queue.take(); item !== undefined; item = queue.take()) taken.push(item);
  return taken;
}

test('TurnQueue: gives out each item once; of a lane the urgent ones first, each kind in order of arrival', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(arbItems, (items) => {
        const queue = fill(items);
        const taken = drain(queue);
        const isInOrder = [...Map.groupBy(taken, ({ lane }) => lane).values()].every((its) =>
          its.every(({ isUrgent, serial }, at) => {
            const before = its[at - 1];
            if (before === undefined) return true;
            return before.isUrgent === isUrgent ? before.serial < serial : before.isUrgent;
          }),
        );
        return taken.length === items.length && new Set(taken).size === items.length && queue.size === 0 && isInOrder;
      }),
    { numRuns: 300 },
  );
});

test('TurnQueue: an item that comes waits for those before it in its lane, and as often for one of each other lane', async (t) => {
  const arbScene = fc.record({ items: arbItems, lane: arbLane, floods: fc.integer({ min: 0, max: 5 }) });
  await assertLaw(
    t,
    () =>
      fc.property(arbScene, ({ items, lane, floods }) => {
        const queue = fill(items);
        const before = queue.sizeOf(lane);
        const mine: Item = { lane, isUrgent: false, serial: -1 };
        queue.add(mine, lane);
        for (let turns = 1; ; turns++) {
          // Others go on adding as fast as they like, urgent ones too.
          for (const other of ['a', 'b', 'c', 'd', 'e'])
            for (let one = 0; other !== lane && one < floods; one++)
              queue.add({ lane: other, isUrgent: true, serial: turns * 10 + one }, other, true);
          if (queue.take() === mine) return turns <= (before + 1) * 5;
          if (turns > 10_000) return false;
        }
      }),
    { numRuns: 200 },
  );
});

test('TurnQueue: an item that becomes urgent changes its place, and no other item its turn', (t) => {
  const queue = new TurnQueue<string>();
  for (const item of ['a1', 'a2', 'a3']) queue.add(item, 'a');
  for (const item of ['b1', 'b2']) queue.add(item, 'b');
  queue.add('a3', 'other', true);
  queue.add('a2', 'a');
  t.is(queue.laneOf('a3'), 'a');
  t.is(queue.size, 5);
  t.deepEqual(
    [1, 2, 3, 4, 5].map(() => queue.take()),
    ['a3', 'b1', 'a1', 'b2', 'a2'],
  );
  t.is(queue.take(), undefined);
});

test('TurnQueue: a lane that may not be served keeps its turn; what is removed costs it none', (t) => {
  const queue = new TurnQueue<string>();
  for (const item of ['a1', 'a2']) queue.add(item, 'a');
  for (const item of ['b1', 'b2', 'b3']) queue.add(item, 'b');
  const notA = (lane: string): boolean => lane !== 'a';
  t.is(queue.take(notA), 'b1');
  t.is(queue.take(notA), 'b2');
  t.true(queue.delete('a1'));
  t.false(queue.delete('a1'));
  t.is(queue.take(), 'a2');
  t.is(queue.take(notA), 'b3');
  t.is(queue.laneCount, 0);
  t.is(queue.take(notA), undefined);
});
