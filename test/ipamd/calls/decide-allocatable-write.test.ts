import test from 'ava';
import fc from 'fast-check';
import { type AllocatableWrite, decideAllocatableWrite } from '../../../ipamd/calls/decide-allocatable-write.ts';
import type { Allocatable } from '../../../ipamd/decide/decide-allocatable.ts';
import { assertLaw } from '../../support/law.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

function can(max: number, more: Partial<Allocatable> = {}): Allocatable {
  return { max, has: 5, limit: 27, isRefused: false, ...more };
}

/** A node whose number is looked at every second, and nothing else of whose object ever changes. */
class Watched {
  told: number | undefined;
  last: AllocatableWrite | undefined;
  readonly writesMs: number[] = [];

  look(now: Allocatable, nowMs: number): void {
    const before = this.told === undefined ? {} : { allocatableRouteENIIPs: this.told };
    const { status, write } = decideAllocatableWrite(before, before, now, this.last, nowMs);
    if (write === undefined) return;
    this.last = write;
    this.told = status.allocatableRouteENIIPs;
    this.writesMs.push(nowMs);
  }
}

test('decideAllocatableWrite: puts the number into a write that is made anyway, however little it changed', (t) => {
  const last = { atMs: 0, isMore: true, max: 20, flaps: 9 };
  const telling = decideAllocatableWrite(
    { allocatableRouteENIIPs: 20 },
    { routeENIs: 2, allocatableRouteENIIPs: 20 },
    can(19),
    last,
    1,
  );
  t.deepEqual(telling, { status: { routeENIs: 2, allocatableRouteENIIPs: 19 } });
});

test('decideAllocatableWrite: leaves the number as it is where nobody knows', (t) => {
  const before = { allocatableRouteENIIPs: 20 };
  t.deepEqual(decideAllocatableWrite(before, before, undefined, undefined, 0), { status: before });
});

test('decideAllocatableWrite: tells at once that there is nothing more to give, and within 30 s that there is again', (t) => {
  const node = new Watched();
  node.look(can(5), 0);
  t.is(node.told, 5);
  for (let second = 1; second <= 30; second++) node.look(can(27), second * SECOND_MS);
  t.is(node.told, undefined);
  t.is(node.writesMs.length, 2);
});

test('decideAllocatableWrite: looks again while a refusal limits the node, whose end wakes nobody', (t) => {
  const before = { allocatableRouteENIIPs: 9 };
  const telling = decideAllocatableWrite(before, before, can(9, { isRefused: true }), undefined, 0);
  t.deepEqual(telling, { status: before, waitMs: 60_000 });
});

test('decideAllocatableWrite: writes seldom around an exhausted subnet, though it goes up and down every half minute', (t) => {
  const node = new Watched();
  for (let second = 0; second < 4 * 3_600; second++)
    node.look(can(Math.floor(second / 30) % 2 === 0 ? 5 : 8), second * SECOND_MS);
  // Up and down once in ten minutes each, once it is known to be a habit.
  const inLastHour = node.writesMs.filter((ms) => ms >= 3 * HOUR_MS).length;
  t.true(inLastHour <= 13, `${inLastHour} writes in an hour`);
});

test('decideAllocatableWrite: writes seldom what does not stay, as where the definition lacks the field', (t) => {
  let last: AllocatableWrite | undefined;
  const writesMs: number[] = [];
  for (let second = 0; second < 3_600; second++) {
    const { write } = decideAllocatableWrite({}, {}, can(5), last, second * SECOND_MS);
    if (write === undefined) continue;
    last = write;
    writesMs.push(second * SECOND_MS);
  }
  t.true(writesMs.length <= 10, `${writesMs.length} writes in an hour`);
});

test('decideAllocatableWrite: never writes twice in 30 s, and is right in the end', async (t) => {
  const history = fc.array(
    fc.record({ most: fc.integer({ min: 5, max: 27 }), seconds: fc.integer({ min: 1, max: 90 }) }),
    {
      minLength: 1,
      maxLength: 40,
    },
  );
  await assertLaw(
    t,
    (t) =>
      fc.property(history, (steps) => {
        const node = new Watched();
        let nowMs = 0;
        for (const { most, seconds } of steps) {
          for (let second = 0; second < seconds; second++, nowMs += SECOND_MS) node.look(can(most), nowMs);
        }
        const final = steps.at(-1)?.most ?? 0;
        for (let second = 0; second < 700; second++, nowMs += SECOND_MS) node.look(can(final), nowMs);
        const told = node.told ?? 27;
        t.is(told > 5, final > 5);
        t.true(Math.abs(told - final) <= 27 / 4);
        for (const [index, ms] of node.writesMs.entries())
          t.true(index === 0 || ms - (node.writesMs[index - 1] ?? 0) >= 30_000);
      }),
    { numRuns: 200 },
  );
});
