import test from 'ava';
import fc from 'fast-check';
import { runController } from '../../kube/controller.ts';
import { TokenBucket } from '../../kube/token-bucket.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import { silentLogger } from '../../runtime/log.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { assertLaw } from '../support/law.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const never = new AbortController().signal;

test('WorkQueue: hands out each key once, in order, and again after done when it was added meanwhile', async (t) => {
  const queue = new WorkQueue({ clock: new VirtualClock(), random: () => 0 });
  for (const key of ['a', 'b', 'a', 'b']) queue.add(key);
  t.is(queue.size, 2);
  t.is(await queue.take(never), 'a');
  queue.add('a');
  queue.add('a');
  t.is(await queue.take(never), 'b');
  t.is(queue.size, 0);
  queue.done('a');
  t.is(await queue.take(never), 'a');
  queue.done('a');
  queue.done('b');
  t.is(queue.size, 0);
});

test('WorkQueue: addFirst puts a key before all others, also one that waits or is being worked on', async (t) => {
  const queue = new WorkQueue({ clock: new VirtualClock(), random: () => 0 });
  for (const key of ['a', 'b', 'c', 'd']) queue.add(key);
  queue.addFirst('c');
  queue.addFirst('b');
  t.is(await queue.take(never), 'c');
  queue.addFirst('c');
  t.is(await queue.take(never), 'b');
  queue.done('c');
  t.is(await queue.take(never), 'c');
  queue.done('c');
  t.is(await queue.take(never), 'a');
  queue.done('b');
  t.is(queue.size, 1, 'each once');
});

test('WorkQueue: addedAgain resolves when a running key is added, at once when it was already, or when aborted', async (t) => {
  const queue = new WorkQueue({ clock: new VirtualClock(), random: () => 0 });
  queue.add('a');
  await queue.take(never);
  let isAdded = false;
  const added = queue.addedAgain('a', never).then(() => {
    isAdded = true;
  });
  queue.add('b');
  await Promise.resolve();
  t.false(isAdded);
  queue.add('a');
  await added;
  await queue.addedAgain('a', never);
  queue.done('a');
  await queue.take(never);
  await queue.take(never);
  const stop = new AbortController();
  const aborted = queue.addedAgain('a', stop.signal);
  stop.abort();
  await t.notThrowsAsync(aborted);
});

test('WorkQueue: wakes who waits; ends the wait when aborted or closed', async (t) => {
  const queue = new WorkQueue({ clock: new VirtualClock(), random: () => 0 });
  const first = queue.take(never);
  queue.add('a');
  t.is(await first, 'a');
  const stop = new AbortController();
  const second = queue.take(stop.signal);
  stop.abort(new Error('enough'));
  await t.throwsAsync(second, { message: 'enough' });
  queue.add('b');
  t.is(queue.size, 1);
  t.is(await queue.take(never), 'b');
  const third = queue.take(never);
  queue.close();
  await t.throwsAsync(third, { message: /closed/ });
  queue.add('c');
  t.is(queue.size, 0);
});

test('WorkQueue: of several later times the earliest counts; failures make the wait grow until forgotten', async (t) => {
  const clock = new VirtualClock();
  const queue = new WorkQueue({ clock, random: () => 0, backoff: { firstMs: 100, maxMs: 1000, factor: 2, jitter: 0 } });
  queue.addAfter('a', 5000);
  queue.addAfter('a', 1000);
  queue.addAfter('a', 3000);
  const taken = async () => {
    const startedMs = clock.monotonicMs();
    queue.done(await clock.run(queue.take(never)));
    return clock.monotonicMs() - startedMs;
  };
  t.is(await taken(), 1000);
  await clock.advance(10_000);
  t.is(queue.size, 0);
  const waits: number[] = [];
  for (let i = 0; i < 5; i++) {
    queue.addRateLimited('a');
    waits.push(await taken());
  }
  t.deepEqual(waits, [100, 200, 400, 800, 1000]);
  queue.forget('a');
  queue.addRateLimited('a');
  t.is(await taken(), 100);
});

test('WorkQueue: a namespace with a thousand keys delays the first key of another by one turn', async (t) => {
  const queue = new WorkQueue({ clock: new VirtualClock(), random: () => 0 });
  for (let at = 0; at < 1_000; at++) queue.addFirst(`greedy/${at}`);
  for (const key of ['shop/web', 'blog/web']) queue.add(key);
  const taken: string[] = [];
  for (let turn = 0; turn < 4; turn++) {
    const key = await queue.take(never);
    taken.push(key.slice(0, key.indexOf('/')));
    queue.done(key);
  }
  t.deepEqual(taken, ['greedy', 'shop', 'blog', 'greedy']);
});

test('runController: a namespace whose work never ends leaves workers to the others, and takes half when it is alone', async (t) => {
  const clock = new VirtualClock();
  const queue = new WorkQueue({ clock, random: () => 0 });
  const stop = new AbortController();
  const running = new Set<string>();
  const reconcile = async (key: string) => {
    running.add(key);
    if (key.startsWith('greedy')) await clock.sleep(3_600_000, stop.signal).catch(() => {});
    return { kind: 'done' } as const;
  };
  const workers = 16;
  const controller = runController({ name: 'x', queue, workers, reconcile, clock, log: silentLogger }, stop.signal);
  for (let namespace = 0; namespace < 3; namespace++)
    for (let at = 0; at < 100; at++) queue.add(`greedy-${namespace}/${at}`);
  await clock.advance(1_000);
  const held = Map.groupBy(running, (key) => key.slice(0, key.indexOf('/')));
  t.true([...held.values()].every(({ length }) => length <= workers / 2));
  for (let at = 0; at < 100; at++) queue.add(`shop/${at}`);
  await clock.advance(1_000);
  t.is([...running].filter((key) => key.startsWith('shop')).length, 100);
  stop.abort(new Error('over'));
  queue.close();
  await clock.run(controller);
});

test('WorkQueue: keys of no namespace are in one lane, and every taker may have one', async (t) => {
  const queue = new WorkQueue({ clock: new VirtualClock(), random: () => 0 });
  for (const key of ['n1', 'n2', 'n3']) queue.add(key);
  t.deepEqual([await queue.take(never), await queue.take(never), await queue.take(never)], ['n1', 'n2', 'n3']);
});

test('runController: never runs a key twice at once, loses no change, and survives failures', async (t) => {
  const scenario = fc.record({
    seed: fc.integer(),
    workers: fc.integer({ min: 1, max: 4 }),
    adds: fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 300 })), { maxLength: 40 }),
  });
  await assertLaw(
    t,
    (t) =>
      fc.asyncProperty(scenario, async ({ seed, workers, adds }) => {
        const clock = new VirtualClock();
        const random = seededRandom(seed);
        const queue = new WorkQueue({ clock, random });
        const stop = new AbortController();
        const running = new Set<string>();
        const version = new Map<string, number>();
        const done = new Map<string, number>();
        const reconcile = async (key: string) => {
          t.false(running.has(key));
          running.add(key);
          const seen = version.get(key) ?? 0;
          await clock.sleep(random() * 200);
          running.delete(key);
          if (random() < 0.3) throw new Error('fails');
          done.set(key, Math.max(seen, done.get(key) ?? 0));
          return random() < 0.2 ? ({ kind: 'again', afterMs: random() * 100 } as const) : ({ kind: 'done' } as const);
        };
        const options = { name: 'test', queue, workers, reconcile, clock, log: silentLogger };
        const controller = runController(options, stop.signal);
        for (const [number, waitMs] of adds) {
          const key = number < 3 ? `k${number}` : `ns-${number % 2}/k${number}`;
          version.set(key, (version.get(key) ?? 0) + 1);
          queue.add(key);
          await clock.advance(waitMs);
        }
        await clock.advance(600_000);
        t.deepEqual(Object.fromEntries(done), Object.fromEntries(version));
        stop.abort(new Error('over'));
        queue.close();
        await clock.run(controller);
      }),
    { numRuns: 100 },
  );
});

test('runController: ends only when what is under way has ended', async (t) => {
  const clock = new VirtualClock();
  const queue = new WorkQueue({ clock, random: () => 0 });
  const stop = new AbortController();
  let hasEnded = false;
  const reconcile = async () => {
    await clock.sleep(5000);
    hasEnded = true;
    return { kind: 'done' } as const;
  };
  const controller = runController({ name: 'x', queue, workers: 2, reconcile, clock, log: silentLogger }, stop.signal);
  queue.add('a');
  await clock.advance(10);
  stop.abort(new Error('over'));
  await clock.run(controller);
  t.true(hasEnded);
});

test('TokenBucket: lets through at most burst + rate x time, in order, whoever gives up', async (t) => {
  const scenario = fc.record({
    qps: fc.integer({ min: 1, max: 50 }),
    burst: fc.integer({ min: 1, max: 20 }),
    calls: fc.array(fc.tuple(fc.integer({ min: 0, max: 500 }), fc.boolean()), { minLength: 1, maxLength: 60 }),
  });
  await assertLaw(
    t,
    (t) =>
      fc.asyncProperty(scenario, async ({ qps, burst, calls }) => {
        const clock = new VirtualClock();
        const bucket = new TokenBucket(clock, qps, burst);
        const entered: { readonly index: number; readonly atMs: number }[] = [];
        const all: Promise<void>[] = [];
        for (const [index, [waitMs, givesUp]] of calls.entries()) {
          const leave = new AbortController();
          const enter = () => void entered.push({ index, atMs: clock.monotonicMs() });
          all.push(bucket.take(leave.signal).then(enter, () => {}));
          await clock.advance(waitMs);
          if (givesUp) leave.abort(new Error('gives up'));
        }
        await clock.run(Promise.all(all));
        t.deepEqual(
          entered.map((one) => one.index),
          entered.map((one) => one.index).toSorted((a, b) => a - b),
        );
        for (const [at, { atMs }] of entered.entries()) t.true(at + 1 <= burst + (atMs * qps) / 1000 + 1e-6);
        t.true(calls.every(([, givesUp], index) => givesUp || entered.some((one) => one.index === index)));
      }),
    { numRuns: 100 },
  );
});

test('TokenBucket: lanes take turns, and within one it is in order', async (t) => {
  const clock = new VirtualClock();
  const bucket = new TokenBucket(clock, 10, 1);
  const entered: string[] = [];
  const call = (lane: string, name: string) => bucket.take(never, lane).then(() => void entered.push(name));
  const all = Array.from({ length: 50 }, (_, at) => call('greedy', `greedy ${at}`));
  all.push(call('shop', 'shop 0'), call('shop', 'shop 1'));
  await clock.run(Promise.all(all));
  t.deepEqual(entered.slice(0, 6), ['greedy 0', 'greedy 1', 'shop 0', 'greedy 2', 'shop 1', 'greedy 3']);
});
