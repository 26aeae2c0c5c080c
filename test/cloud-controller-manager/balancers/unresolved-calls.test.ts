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
function open({ ranMs = MINUTE_MS, outcomes = [] }: { ranMs?: number; outcomes?: LoadBalancerOutcome[] } = {}) {
  const time = { nowMs: 5 };
  const settle = async (): Promise<LoadBalancerOutcome> => outcomes.shift() ?? { kind: 'pending' };
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
  time.nowMs += 10 * MINUTE_MS;
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
