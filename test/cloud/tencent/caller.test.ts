import test from 'ava';
import { classifyError } from '../../../cloud/classify-error.ts';
import { type CloudError, isCloudError } from '../../../cloud/cloud-error.ts';
import type { Action, TencentApi } from '../../../cloud/tencent/requests.ts';
import { createTencentCloud, type TencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { contextOf } from '../cloud-fixture.ts';

/** A code that the cloud answers with; OK for an answer, and HANGS for none. */
type Answer = string;

/** A cloud that gives these answers, the last of them forever. */
function scripted(...answers: readonly Answer[]) {
  const clock = new VirtualClock();
  const sent: { readonly action: Action; readonly atMs: number }[] = [];
  const state = { skewMs: 0, renewals: 0 };
  const skewed: Clock = {
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs() + state.skewMs,
    bootMs: () => clock.bootMs() + state.skewMs,
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
  const api: TencentApi = {
    call: async (action, _request, signal) => {
      const answer = answers[Math.min(sent.length, answers.length - 1)] ?? 'OK';
      sent.push({ action, atMs: skewed.monotonicMs() });
      if (answer === 'HANGS') await clock.sleep(3_600_000, signal);
      if (answer !== 'OK') throw classifyError({ code: answer, action, text: 'no' });
      return { RequestId: 'task-1', PrivateIpAddressSet: [], NetworkInterface: ENI };
    },
    renewCredentials: () => {
      state.renewals += 1;
    },
  };
  const cloud = createTencentCloud({ api, clock: skewed, random: seededRandom(1) });
  return { clock, cloud, sent, state };
}

const ENI = { NetworkInterfaceId: 'eni-1', SubnetId: 'subnet-1', VpcId: 'vpc-1', State: 'PENDING' };

async function failureOf(clock: VirtualClock, work: Promise<unknown>): Promise<CloudError> {
  const error: unknown = await clock.run(
    work.then(
      () => undefined,
      (reason: unknown) => reason,
    ),
  );
  if (!isCloudError(error)) throw new Error(`got ${String(error)}`);
  return error;
}

const create = (cloud: TencentCloud) =>
  cloud.enis.create({ vpcId: 'vpc-1', subnetId: 'subnet-1', name: 'n', clientToken: 't' }, contextOf());

const unsure = test.macro(async (t, answers: readonly Answer[]) => {
  const { clock, cloud, sent } = scripted(...answers);
  const error = await failureOf(clock, create(cloud));
  t.true(sent.length > 1);
  t.is(error.retry, 'resolve', error.message);
});
test('Caller: a change whose first answer was lost may have happened, though the next is throttled', unsure, [
  'NETWORK',
  'RequestLimitExceeded',
]);
test('Caller: a change that hung may have happened, though the next is refused', unsure, [
  'HANGS',
  'ResourceInsufficient.Subnet',
]);
test('Caller: a change whose first request still runs may happen', unsure, [
  'UnsupportedOperation.IdempotentProcessing',
]);
test('Caller: a change that hung may have happened, though time runs out in line', unsure, [
  'HTTP_502',
  'FailedOperation.TaskFailed',
]);

test('Caller: a refusal that nothing unsure came before is what it is', async (t) => {
  const { clock, cloud } = scripted('RequestLimitExceeded', 'ResourceInsufficient.Subnet');
  t.like(await failureOf(clock, create(cloud)), { retry: 'quota', scope: 'subnet' });
});

test('Caller: a change that waits for the rate is not sent so late that its answer would come too late', async (t) => {
  const { clock, cloud, sent } = scripted('OK');
  const timeoutMs = 8_000;
  const calls = Array.from({ length: 1_000 }, (_, index) =>
    cloud.ips.unassign(`eni-${index}`, ['10.0.0.1'], contextOf({ timeoutMs })).then(
      () => 'done',
      (error: unknown) => (isCloudError(error) ? error.code : String(error)),
    ),
  );
  const outcomes = Map.groupBy(await clock.run(Promise.all(calls)), (outcome) => outcome);
  t.deepEqual([...outcomes.keys()].toSorted(), ['DEADLINE', 'done']);
  t.is(outcomes.get('done')?.length, sent.length, 'what was not sent says so');
  t.true(Math.max(...sent.map(({ atMs }) => atMs)) <= 0.75 * timeoutMs);
});

test('Caller: sends nothing once its time is over, however long the process stood still', async (t) => {
  const { clock, cloud, sent, state } = scripted('OK');
  const calls = Array.from({ length: 20 }, (_, index) =>
    cloud.ips.unassign(`eni-${index}`, ['10.0.0.1'], contextOf()).catch((error: unknown) => error),
  );
  await clock.advance(1);
  const before = sent.length;
  t.true(before < 20);
  // A process that is stopped, or a machine without CPU time, wakes with all its timers due at once.
  state.skewMs = 120_000;
  await clock.run(Promise.all(calls));
  t.is(sent.length, before);
});

test('Caller: takes a new key when an attempt that is not the first finds the old one expired', async (t) => {
  const { clock, cloud, sent, state } = scripted('RequestLimitExceeded', 'AuthFailure.TokenFailure', 'OK');
  await clock.run(create(cloud));
  t.is(sent.length, 3);
  t.is(state.renewals, 1);
});

test('Caller: takes a new key but once', async (t) => {
  const { clock, cloud, sent } = scripted('AuthFailure.TokenFailure');
  t.like(await failureOf(clock, create(cloud)), { retry: 'credentials' });
  t.is(sent.length, 2);
});

const repeats = test.macro(async (t, answers: readonly Answer[], count: number) => {
  const { clock, cloud } = scripted(...answers, 'OK');
  let seen = 0;
  const onRepeat = () => {
    seen += 1;
  };
  const spec = { vpcId: 'vpc-1', subnetId: 'subnet-1', name: 'n', clientToken: 't' };
  await clock.run(cloud.enis.create(spec, contextOf({ onRepeat })));
  t.is(seen, count);
});
test('Caller: an answer to a first request is of that', repeats, [], 0);
test('Caller: an answer after one that was refused is of the last request', repeats, ['RequestLimitExceeded'], 0);
test('Caller: an answer after one that was lost may be of before', repeats, ['NETWORK', 'RequestLimitExceeded'], 2);
