import test from 'ava';
import { classifyError } from '../../../cloud/classify-error.ts';
import type { CallContext } from '../../../cloud/cloud.ts';
import type { LoadBalancerOutcome } from '../../../cloud/load-balancers.ts';
import { UnresolvedCalls } from '../../../cloud-controller-manager/balancers/unresolved-calls.ts';

const MINUTE_MS = 60_000;
const NAME = 'tke-eni-0000000000000001';
const CONTEXT: CallContext = { priority: 'warm', owner: 'default', signal: new AbortController().signal };
const TASK = { taskId: 'task-1', action: 'CreateListener' };
const [loadBalancerId, settled] = ['lb-00000001', '0123456789abcdef'];

/** Calls of a process that has run for a while, or just begins, in a cloud whose tasks end as `outcomes` say. */
function open({
  ranMs = MINUTE_MS,
  outcomes = [],
}: {
  ranMs?: number;
  outcomes?: (LoadBalancerOutcome | Error)[];
} = {}) {
  const time = { nowMs: 5, askMs: 0 };
  const settle = async (): Promise<LoadBalancerOutcome> => {
    const outcome = outcomes.shift() ?? { kind: 'pending' };
    time.nowMs += time.askMs;
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
  const calls = new UnresolvedCalls({
    cloud: { loadBalancers: { settle } },
    clock: { monotonicMs: () => time.nowMs },
  });
  time.nowMs += ranMs;
  return { time, calls };
}

test('calls of a former process have a minute, unless the mark of the owner tells that there are none', async (t) => {
  const { time, calls } = open({ ranMs: 0 });
  const marks = {
    unsettled: { serial: 1, loadBalancerId },
    settled: { serial: 1, loadBalancerId, settled },
    'settled in a group': { serial: 1, loadBalancerId, settled, grouped: true },
    'never begun': { serial: 0 },
    'without its record': { serial: 0 },
  };
  for (const [name, mark] of Object.entries(marks)) calls.see(name, mark, name !== 'never begun');
  const unresolved = () => Object.keys(marks).filter((name) => calls.isUnresolved(name));
  t.deepEqual(unresolved(), ['unsettled', 'settled in a group', 'without its record']);
  t.is(await calls.resolve('unsettled', CONTEXT), MINUTE_MS / 3);
  time.nowMs += MINUTE_MS - 1;
  t.is(await calls.resolve('unsettled', CONTEXT), 1);
  time.nowMs += 1;
  t.deepEqual(unresolved(), []);
  t.is(await calls.resolve('unsettled', CONTEXT), 0);
});

test('a call without an answer has a minute, and one that the cloud refused is over', (t) => {
  const { time, calls } = open();
  for (const code of [
    'LimitExceeded',
    'InvalidParameter',
    'RequestLimitExceeded',
    'FailedOperation.ResourceInOperating',
  ])
    calls.noteFailure(NAME, classifyError({ code, action: 'CreateListener', text: '' }));
  t.false(calls.isUnresolved(NAME));
  for (const error of [
    classifyError({ code: 'TIMEOUT', action: 'CreateListener', text: '' }),
    new Error('the term ended'),
  ]) {
    calls.noteFailure(NAME, error);
    time.nowMs += MINUTE_MS - 1;
    t.true(calls.isUnresolved(NAME));
    t.false(calls.isUnresolved('tke-eni-0000000000000002'));
    time.nowMs += 1;
    t.false(calls.isUnresolved(NAME));
  }
});

test('a task that goes on is waited for, and what it made is looked for afterwards', async (t) => {
  const { time, calls } = open({
    outcomes: [{ kind: 'pending' }, { kind: 'pending' }, { kind: 'failed', reason: '' }],
  });
  t.is((await calls.settle(NAME, TASK, CONTEXT)).kind, 'pending');
  time.nowMs += 10 * MINUTE_MS - 1;
  t.true(calls.isUnresolved(NAME));
  t.true((await calls.resolve(NAME, CONTEXT)) > 0);
  t.true(calls.isUnresolved(NAME));
  t.true((await calls.resolve(NAME, CONTEXT)) > 0);
  t.is(await calls.resolve(NAME, CONTEXT), 0);
});

test('a task that the cloud does not know may begin late', async (t) => {
  const { time, calls } = open({ outcomes: [{ kind: 'lost' }] });
  await calls.settle(NAME, TASK, CONTEXT);
  t.is(await calls.resolve(NAME, CONTEXT), MINUTE_MS / 3);
  time.nowMs += MINUTE_MS;
  t.is(await calls.resolve(NAME, CONTEXT), 0);
});

test('a task that does not end is reported after a minute, and counts as over after ten', async (t) => {
  const { time, calls } = open();
  await calls.settle(NAME, TASK, CONTEXT);
  time.nowMs += MINUTE_MS - 1;
  t.is(calls.describeOverdue(NAME), undefined);
  time.nowMs += 1;
  t.true((await calls.resolve(NAME, CONTEXT)) > 0);
  t.regex(calls.describeOverdue(NAME) ?? '', /^CreateListener \(task task-1\) /);
  time.nowMs += 9 * MINUTE_MS - 1;
  t.true((await calls.follow(NAME, CONTEXT)) < MINUTE_MS, 'it was accepted then, however often it is asked for');
  time.nowMs += 1;
  t.false(calls.isUnresolved(NAME));
  t.is(calls.describeOverdue(NAME), undefined);
  t.is(await calls.follow(NAME, CONTEXT), Number.POSITIVE_INFINITY);
  t.is(await calls.resolve(NAME, CONTEXT), 0);
});

test('a task whose time is over while another one is asked for does not begin again', async (t) => {
  const { time, calls } = open();
  for (const taskId of ['task-1', 'task-2']) await calls.settle(NAME, { ...TASK, taskId }, CONTEXT);
  time.nowMs += 10 * MINUTE_MS - 4_000;
  time.askMs = 8_000;
  await calls.follow(NAME, CONTEXT);
  t.false(calls.isUnresolved(NAME));
});

test('a task that the cloud refuses to know is lost, and any other failed question is asked again', async (t) => {
  const errorOf = (code: string) => classifyError({ code, action: 'DescribeTaskStatus', text: '' });
  for (const code of ['InvalidParameter', 'InvalidParameter.FormatError', 'ResourceNotFound']) {
    const { time, calls } = open({ outcomes: [{ kind: 'pending' }, errorOf('UnauthorizedOperation'), errorOf(code)] });
    await calls.settle(NAME, TASK, CONTEXT);
    t.is(await calls.follow(NAME, CONTEXT), MINUTE_MS / 3, 'whoever may not ask does not know');
    t.true((await calls.follow(NAME, CONTEXT)) < MINUTE_MS / 3, code);
    t.is(await calls.resolve(NAME, CONTEXT), MINUTE_MS / 3);
    time.nowMs += MINUTE_MS;
    t.is(await calls.resolve(NAME, CONTEXT), 0);
  }
});
