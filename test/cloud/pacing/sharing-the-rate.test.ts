import test from 'ava';
import { CallScheduler, type CallVerdict } from '../../../cloud/pacing/call-scheduler.ts';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { contextOf, SPEC } from '../cloud-fixture.ts';

const SETTINGS = { productPerSecond: 50, productInFlight: 100, blindEvery: 16, apiStartPerSecond: () => 20 };
const NEVER = new AbortController().signal;
const fine = (): CallVerdict => ({ isThrottled: false, afterMs: 0 });

test('CallScheduler: a refusal of the account slows every API of the product, and it recovers', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, SETTINGS);
  const call = (action: string, product = 'vpc') =>
    scheduler.run({ product, action, priority: 'warm', owner: 'n' }, NEVER, async () => undefined, fine);
  const refuse = () =>
    scheduler.run(
      { product: 'vpc', action: 'A', priority: 'warm', owner: 'n' },
      NEVER,
      () => Promise.reject(new Error('the account calls too often')),
      () => ({ isThrottled: true, isProductWide: true, afterMs: 500 }),
    );
  const secondsFor = async (actions: readonly string[], product = 'vpc'): Promise<number> => {
    const startMs = clock.monotonicMs();
    await clock.run(Promise.all(actions.map((action) => call(action, product))));
    return (clock.monotonicMs() - startMs) / 1000;
  };
  const sixty = ['B', 'C', 'D'].flatMap((action) => Array.from({ length: 20 }, () => action));
  const usual = await secondsFor(sixty);
  for (let count = 0; count < 15; count++) await clock.run(refuse().catch(() => undefined));
  t.is(scheduler.perSecond('vpc', 'A'), 20);
  const rates = [...scheduler.rates()];
  const product = rates.find((rate) => rate.product === 'vpc' && rate.action === undefined);
  t.true((product?.perSecond ?? 50) < 10, JSON.stringify(rates));
  t.true((await secondsFor(sixty)) > 2 * usual);
  await secondsFor(sixty, 'cvm');
  for (let round = 0; round < 20; round++) await secondsFor(sixty);
  t.true((await secondsFor(sixty)) < 1.2 * usual);
  t.true((await secondsFor(sixty, 'cvm')) < 1.2 * usual);
});

test('CallScheduler: a flood of collection does not delay a call for a Pod by more than a turn', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, SETTINGS);
  const serve = async (): Promise<void> => clock.sleep(50);
  const flood = Array.from({ length: 2_000 }, (_, index) => {
    const action = index % 2 === 0 ? 'Unassign' : 'Delete';
    return scheduler.run({ product: 'vpc', action, priority: 'gc', owner: `n${index % 50}` }, NEVER, serve, fine);
  });
  await clock.advance(2_000);
  const waits: number[] = [];
  for (let pod = 0; pod < 40; pod++) {
    const askedMs = clock.monotonicMs();
    // Every other one wants the very API that the flood waits for.
    const action = pod % 2 === 0 ? 'Assign' : 'Unassign';
    await clock.run(
      scheduler.run(
        { product: 'vpc', action, priority: 'pod', owner: 'n-pod' },
        NEVER,
        async () => {
          waits.push(clock.monotonicMs() - askedMs);
        },
        fine,
      ),
    );
    await clock.advance(130);
  }
  // One turn of an API at 20 a second is 50 ms; once in sixteen turns the eldest goes first.
  t.true(Math.max(...waits) <= 120, JSON.stringify(waits));
  t.true(scheduler.waiting > 1_000);
  await clock.run(Promise.all(flood));
});

test('CallScheduler: urgent calls of one owner take half of the rate from the others at most, where they are tenants', async (t) => {
  const clock = new VirtualClock();
  const scheduler = new CallScheduler(clock, { ...SETTINGS, blindEvery: 2 });
  const ACTIONS = ['A', 'B', 'C', 'D'];
  const flood = Array.from({ length: 4_000 }, (_, index) => {
    const action = ACTIONS[index % ACTIONS.length] ?? 'A';
    const ticket = { product: 'clb', action, priority: 'pod', owner: 'greedy' } as const;
    return scheduler.run(ticket, NEVER, () => clock.sleep(50), fine).catch(() => {});
  });
  await clock.advance(2_000);
  const waits: number[] = [];
  for (let call = 0; call < 40; call++) {
    const askedMs = clock.monotonicMs();
    const ticket = { product: 'clb', action: call % 2 === 0 ? 'A' : 'E', priority: 'gc', owner: 'shop' } as const;
    await clock.run(scheduler.run(ticket, NEVER, async () => waits.push(clock.monotonicMs() - askedMs), fine));
    await clock.advance(130);
  }
  // Two turns of an API at 12 a second: four of them share 50.
  t.true(Math.max(...waits) <= 250, JSON.stringify(waits));
  t.true(scheduler.waiting > 1_000);
  await clock.run(Promise.all(flood));
});

test('createTencentCloud: the observer hears of attempts, retries and ends; the pacing tells what is allowed', async (t) => {
  const clock = new VirtualClock();
  const host = new CloudHost(SPEC, clock);
  const attempts: string[] = [];
  const calls: object[] = [];
  const cloud = createTencentCloud({
    api: createInProcessApi(host),
    clock,
    random: seededRandom(1),
    observer: {
      onAttempt: ({ action, attempt, code }) => attempts.push(`${action} ${attempt} ${code ?? 'ok'}`),
      onCall: ({ tookMs: _, ...call }) => calls.push(call),
    },
  });
  host.faults.add({ fault: { kind: 'error', code: 'RequestLimitExceeded.UinLimitExceeded' }, times: 2 });
  await clock.run(cloud.subnets.sweep(SPEC.vpcId, contextOf()));
  t.deepEqual(attempts, [
    'DescribeSubnets 1 RequestLimitExceeded.UinLimitExceeded',
    'DescribeSubnets 2 RequestLimitExceeded.UinLimitExceeded',
    'DescribeSubnets 3 ok',
  ]);
  const context = contextOf({ priority: 'gc' });
  await clock.run(cloud.ips.unassign('eni-missing0', ['10.0.0.9'], context).catch(() => undefined));
  t.deepEqual(calls, [
    { product: 'vpc', action: 'DescribeSubnets', priority: 'pod', attempts: 3, code: undefined },
    { product: 'vpc', action: 'UnassignPrivateIpAddresses', priority: 'gc', attempts: 1, code: 'ResourceNotFound' },
  ]);
  const [product, ...apis] = [...cloud.pacing.rates()];
  t.true((product?.perSecond ?? 50) < 50);
  t.deepEqual(
    apis.map(({ action, perSecond }) => [action, perSecond]),
    [
      ['DescribeSubnets', 20],
      ['UnassignPrivateIpAddresses', 50],
    ],
  );
});
