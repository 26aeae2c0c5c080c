import test from 'ava';
import fc from 'fast-check';
import { FairQueue } from '../../../cloud/pacing/fair-queue.ts';
import { assertLaw } from '../../support/law.ts';

type Item = { readonly rank: number; readonly owner: string; readonly serial: number };

function drain(queue: FairQueue<Item>): readonly Item[] {
  const taken: Item[] = [];
  for (let place = queue.take(); place !== undefined; place = queue.take()) taken.push(place.item);
  return taken;
}

test('FairQueue: gives out everything once, one owner of one rank in order of arrival', async (t) => {
  const arbItems = fc.array(
    fc.record({ rank: fc.integer({ min: 0, max: 2 }), owner: fc.constantFrom('a', 'b', 'c') }),
    { maxLength: 120 },
  );
  await assertLaw(
    t,
    () =>
      fc.property(arbItems, (items) => {
        const queue = new FairQueue<Item>(16);
        for (const [serial, { rank, owner }] of items.entries()) queue.add({ rank, owner, serial }, rank, owner);
        const taken = drain(queue);
        if (taken.length !== items.length || queue.size !== 0) return false;
        const last = new Map<string, number>();
        return taken.every(({ rank, owner, serial }) => {
          const before = last.get(`${rank}/${owner}`) ?? -1;
          last.set(`${rank}/${owner}`, serial);
          return serial > before;
        });
      }),
    { numRuns: 300 },
  );
});

test('FairQueue: an owner with a thousand wishes waits for nobody, and nobody for it', (t) => {
  const queue = new FairQueue<Item>(16);
  for (let serial = 0; serial < 1_000; serial++) queue.add({ rank: 1, owner: 'greedy', serial }, 1, 'greedy');
  for (const owner of ['a', 'b', 'c']) queue.add({ rank: 1, owner, serial: 0 }, 1, owner);
  const firstFour = [1, 2, 3, 4].map(() => queue.take()?.item.owner);
  t.deepEqual(firstFour.toSorted(), ['a', 'b', 'c', 'greedy']);
});

test("FairQueue: higher rank goes first, and one turn in sixteen is the eldest's", (t) => {
  const queue = new FairQueue<Item>(16);
  queue.add({ rank: 0, owner: 'old', serial: 0 }, 0, 'old');
  for (let serial = 1; serial <= 100; serial++) queue.add({ rank: 2, owner: 'pods', serial }, 2, 'pods');
  const order = drain(queue).map((item) => item.owner);
  t.is(order.indexOf('old'), 15);
});

test('FairQueue: no item is passed over forever while others of higher rank keep coming', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(fc.integer({ min: 1, max: 30 }), fc.constantFrom('a', 'b', 'c'), (waiting, owner) => {
        const queue = new FairQueue<Item>(16);
        for (let serial = 0; serial < waiting; serial++) queue.add({ rank: 0, owner, serial }, 0, owner);
        let served = 0;
        for (let turn = 1; turn <= waiting * 16; turn++) {
          queue.add({ rank: 2, owner: 'pods', serial: 1_000 + turn }, 2, 'pods');
          if (queue.take()?.item.rank === 0) served += 1;
        }
        return served === waiting;
      }),
    { numRuns: 60 },
  );
});

test('FairQueue: a place that is removed is not given out', (t) => {
  const queue = new FairQueue<string>(16);
  const first = queue.add('first', 1, 'a');
  queue.add('second', 1, 'a');
  t.true(queue.remove(first));
  t.false(queue.remove(first));
  t.is(queue.take()?.item, 'second');
  t.is(queue.take(), undefined);
});
