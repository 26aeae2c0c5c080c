import test from 'ava';
import type { Ticket } from '../../../cloud/pacing/call-limiter.ts';
import { CallScheduler, type CallVerdict } from '../../../cloud/pacing/call-scheduler.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const SETTINGS = { productPerSecond: 50, productInFlight: 100, blindEvery: 16, apiStartPerSecond: () => 20 };
const NEVER = new AbortController().signal;

function ticket(change: Partial<Ticket> = {}): Ticket {
  return { product: 'vpc', action: 'Assign', priority: 'warm', owner: 'node', ...change };
}

const fine = (): CallVerdict => ({ isThrottled: false, afterMs: 0 });

test('CallScheduler: holds an API to its rate and a product to its ceiling', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, SETTINGS);
  const call = (action: string) => scheduler.run(ticket({ action }), NEVER, async () => undefined, fine);
  await clock.run(Promise.all(Array.from({ length: 101 }, () => call('A'))));
  t.is(Math.round(clock.monotonicMs() / 1000), 5);
  const startMs = clock.monotonicMs();
  const actions = ['A', 'B', 'C', 'D'].flatMap((action) => Array.from({ length: 50 }, () => action));
  await clock.run(Promise.all(actions.map(call)));
  // Four APIs at 20 would be 80 a second; the product takes 50.
  t.is(Math.round((clock.monotonicMs() - startMs) / 1000), 4);
});

test('CallScheduler: an owner is busy while calls of its own wait, or those of more others than a second serves', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, SETTINGS);
  const call = (owner: string) => scheduler.run(ticket({ owner }), NEVER, async () => undefined, fine);
  const running = Array.from({ length: 60 }, () => call('greedy'));
  t.true(scheduler.isBusyFor('greedy'));
  t.false(scheduler.isBusyFor('other'));
  running.push(...Array.from({ length: 40 }, (_, at) => call(`n${at}`)));
  t.true(scheduler.isBusyFor('other'));
  await clock.run(Promise.all(running));
  t.false(scheduler.isBusyFor('greedy'));
});

test('CallScheduler: serves Pods before the warm pool before collection, across APIs', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, { ...SETTINGS, productPerSecond: 10 });
  const order: string[] = [];
  const call = (priority: Ticket['priority'], action: string) =>
    scheduler.run(ticket({ priority, action }), NEVER, async () => void order.push(priority), fine);
  // The first goes at once, whatever it is.
  await clock.run(call('gc', 'X'));
  order.length = 0;
  const calls = [call('gc', 'A'), call('warm', 'B'), call('pod', 'A'), call('gc', 'B'), call('pod', 'C')];
  await clock.run(Promise.all(calls));
  t.deepEqual(order, ['pod', 'pod', 'warm', 'gc', 'gc']);
});

test('CallScheduler: a stream of calls for Pods at one API does not keep another from collecting', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, { ...SETTINGS, productPerSecond: 10 });
  let podsBefore = 0;
  let isCollected = false;
  const collected = scheduler
    .run(ticket({ action: 'Delete', priority: 'gc' }), NEVER, async () => undefined, fine)
    .then(() => scheduler.run(ticket({ action: 'Delete', priority: 'gc' }), NEVER, async () => undefined, fine))
    .then(() => {
      isCollected = true;
    });
  const serve = async (): Promise<void> => {
    if (!isCollected) podsBefore += 1;
  };
  const pods = Array.from({ length: 200 }, () => scheduler.run(ticket({ priority: 'pod' }), NEVER, serve, fine));
  await clock.run(collected);
  t.true(podsBefore <= 32, String(podsBefore));
  await clock.run(Promise.all(pods));
});

test('CallScheduler: lets at most so many calls be under way, and goes on when one ends', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, { ...SETTINGS, productInFlight: 3 });
  let underWay = 0;
  let most = 0;
  const call = () =>
    scheduler.run(
      ticket(),
      NEVER,
      async () => {
        underWay += 1;
        most = Math.max(most, underWay);
        await clock.sleep(5_000);
        underWay -= 1;
      },
      fine,
    );
  await clock.run(Promise.all(Array.from({ length: 10 }, call)));
  t.is(most, 3);
  t.is(underWay, 0);
});

test('CallScheduler: whoever leaves the line costs no turn', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, { ...SETTINGS, productPerSecond: 1 });
  await clock.run(scheduler.run(ticket(), NEVER, async () => undefined, fine));
  const controller = new AbortController();
  const reason = new Error('left');
  const left = scheduler.run(ticket(), controller.signal, async () => undefined, fine);
  const stays = scheduler.run(ticket(), NEVER, async () => 'served', fine);
  controller.abort(reason);
  t.is(await left.catch((error: unknown) => error), reason);
  t.is(await clock.run(stays), 'served');
  t.true(clock.monotonicMs() <= 1_001);
  t.is(scheduler.waiting, 0);
});

test('CallScheduler: a refusal slows its own API down and no other', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, SETTINGS);
  const refuse = () => Promise.reject(new Error('throttled'));
  const judge = (): CallVerdict => ({ isThrottled: true, afterMs: 500 });
  for (let call = 0; call < 20; call++) {
    await clock.run(scheduler.run(ticket({ action: 'A' }), NEVER, refuse, judge).catch(() => undefined));
    await clock.run(scheduler.run(ticket({ action: 'B' }), NEVER, async () => undefined, fine));
  }
  t.true((scheduler.perSecond('vpc', 'A') ?? 20) < 5);
  t.is(scheduler.perSecond('vpc', 'B'), 20);
});
