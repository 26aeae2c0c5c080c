import test from 'ava';
import fc from 'fast-check';
import { type DemandRise, GATHER_DEMAND_MS, mayGather } from '../../../agent/supply/may-gather.ts';
import { assertLaw } from '../../support/law.ts';

/** One Pod came to a node at rest, and left four addresses. */
const ONE: DemandRise = {
  rise: 1,
  free: 4,
  coming: 0,
  needsEni: false,
  gatheredMs: 0,
  sinceWriteMs: 3_600_000,
};

const table: readonly (readonly [name: string, change: Partial<DemandRise>, mayWait: boolean])[] = [
  ['the first Pod', {}, true],
  ['nothing but an epoch', { rise: 0, free: -3, sinceWriteMs: 0 }, true],
  ['fewer addresses', { rise: -1 }, false],
  ['two Pods at once', { rise: 2, free: 3 }, false],
  ['a Pod that waits', { free: -1, coming: 5 }, false],
  ['no address left', { free: 0 }, false],
  ['no address left, and some that come', { free: 0, coming: 4 }, true],
  ['a full call', { rise: 10, free: 30, gatheredMs: 9_000 }, false],
  ['nearly a full call', { rise: 9, free: 30, gatheredMs: 9_000 }, true],
  ['a further ENI', { needsEni: true }, false],
  ['a Pod every two seconds: the third', { rise: 3, free: 2, gatheredMs: 4_000 }, true],
  ['a Pod every two seconds: the fourth', { rise: 4, free: 1, gatheredMs: 6_000 }, false],
  ['a Pod every second: the second', { rise: 2, free: 3, gatheredMs: 1_000 }, false],
  ['a Pod a second after a write', { sinceWriteMs: 999 }, false],
  ['a Pod two seconds after a write that is answered', { sinceWriteMs: 2_000 }, true],
  ['a Pod two seconds after a write, with a call under way', { free: 0, coming: 4, sinceWriteMs: 2_000 }, true],
  ['a Pod sooner after a write, with a call under way', { free: 0, coming: 4, sinceWriteMs: 1_999 }, false],
];

for (const [name, change, mayWait] of table) {
  test(`mayGather: ${name} ${mayWait ? 'may wait' : 'does not wait'}`, (t) => {
    t.is(mayGather({ ...ONE, ...change }), mayWait);
  });
}

test('mayGather: nothing waits while a Pod waits, or no address would be left for the next', async (t) => {
  const arbRise = fc.record<DemandRise>({
    rise: fc.integer({ min: 1, max: 20 }),
    free: fc.integer({ min: -5, max: 20 }),
    coming: fc.nat(10),
    needsEni: fc.boolean(),
    gatheredMs: fc.nat(60_000),
    sinceWriteMs: fc.nat(3_600_000),
  });
  await assertLaw(t, () =>
    fc.property(arbRise, (one) => {
      if (one.free >= 0 && one.free + one.coming > 0) return true;
      return !mayGather(one);
    }),
  );
});

const arbPool = fc.record({
  warm: fc.integer({ min: 1, max: 12 }),
  everyMs: fc.integer({ min: 100, max: 20_000 }),
  topUpMs: fc.integer({ min: 100, max: 4_000 }),
});

test('mayGather: at a steady pace no Pod waits, if all warm addresses but one last for two top-ups', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(arbPool, (pool) => {
        const isSlow = (pool.warm - 1) * pool.everyMs >= 2 * pool.topUpMs;
        return !isSlow || waitsIn(pool, mayGather).every((ms) => ms === 0);
      }),
    { numRuns: 3_000 },
  );
});

test('mayGather: Pods that come faster than they can be topped up wait no more than a top-up longer', async (t) => {
  await assertLaw(
    t,
    () =>
      fc.property(arbPool, (pool) => {
        const before = waitsIn(pool, () => false);
        return waitsIn(pool, mayGather).every((ms, pod) => ms <= (before[pod] ?? 0) + pool.topUpMs);
      }),
    { numRuns: 3_000 },
  );
});

/** Lets Pods come to a pool at a steady pace, which is topped up by one call at a time; returns how long each waits. */
function waitsIn(
  { warm, everyMs, topUpMs }: { readonly warm: number; readonly everyMs: number; readonly topUpMs: number },
  mayWait: (rise: DemandRise) => boolean,
): readonly number[] {
  const comeMs = Array.from({ length: 60 }, (_, pod) => pod * everyMs);
  const servedMs: number[] = [];
  let [asked, bound, used] = [warm, warm, 0];
  let sinceMs: number | undefined;
  let lastWriteMs = -3_600_000;
  let call: { readonly endsMs: number; readonly count: number } | undefined;
  const look = (nowMs: number): void => {
    while (servedMs.length < Math.min(used, bound)) servedMs.push(nowMs);
    const rise = used + warm - asked;
    if (rise > 0) {
      sinceMs ??= nowMs;
      const times = { gatheredMs: nowMs - sinceMs, sinceWriteMs: nowMs - lastWriteMs };
      const isHeld = mayWait({ rise, free: bound - used, coming: asked - bound, needsEni: false, ...times });
      if (!isHeld || nowMs >= sinceMs + GATHER_DEMAND_MS) {
        [asked, sinceMs, lastWriteMs] = [used + warm, undefined, nowMs];
      }
    }
    if (call === undefined && asked > bound) call = { endsMs: nowMs + topUpMs, count: Math.min(10, asked - bound) };
  };
  const nextMs = (): number =>
    Math.min(
      call?.endsMs ?? Number.POSITIVE_INFINITY,
      sinceMs === undefined ? Number.POSITIVE_INFINITY : sinceMs + GATHER_DEMAND_MS,
      comeMs[used] ?? Number.POSITIVE_INFINITY,
    );
  for (let nowMs = nextMs(); Number.isFinite(nowMs); nowMs = nextMs()) {
    if (call?.endsMs === nowMs) {
      bound += call.count;
      call = undefined;
    }
    if (comeMs[used] === nowMs) used += 1;
    look(nowMs);
  }
  return servedMs.map((ms, pod) => ms - (comeMs[pod] ?? 0));
}
