import test, { type ExecutionContext } from 'ava';
import { EVENT_KIND, EVENT_OUTCOME } from '../../../agent/api/ops-messages.ts';
import { attach } from '../../../agent/attachment/attach.ts';
import { check } from '../../../agent/attachment/check.ts';
import { collectInvalid } from '../../../agent/attachment/collect.ts';
import { detach, finishReleasing } from '../../../agent/attachment/detach.ts';
import { recorderReply } from '../../../agent/ops/recorder-reply.ts';
import { EventHub } from '../../../agent/recorder/event-hub.ts';
import type { EventMessage } from '../../../agent/recorder/event-message.ts';
import { FlightRecorder } from '../../../agent/recorder/flight-recorder.ts';
import { openOperationLog } from '../../../agent/recorder/open-operation-log.ts';
import type { UseCaseDeps } from '../../../agent/state/ports.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import { addOf, createTestNode, PATIENT } from '../use-cases/fixtures.ts';

function scene(t: ExecutionContext, ipCount = 4) {
  const node = createTestNode(ipCount);
  t.teardown(node.close);
  const recorder = new FlightRecorder();
  const hub = new EventHub();
  const operationLog = openOperationLog({ clock: node.clock, recorder, hub });
  const events: EventMessage[] = [];
  hub.watch({ kinds: new Set(), write: (event) => events.push(event) > 0, end: () => {} });
  const deps: UseCaseDeps = { ...node.deps, operationLog };
  const recorded = (pod: string) => recorderReply(recorder, pod).pods?.[0]?.operations ?? [];
  return { ...node, deps, operationLog, recorder, events, recorded };
}

test('operationLog: records ADD, CHECK and DEL of a Pod with what was decided and each step', async (t) => {
  const { deps, recorded, events } = scene(t);
  await attach(deps, addOf(1), PATIENT);
  await check(deps, { containerId: 'c1', ifName: 'eth0', netns: '/run/netns/other' });
  await detach(deps, { containerId: 'c1', ifName: 'eth0' });
  const operations = recorded('default/p1');
  t.deepEqual(
    operations.map(({ kind, outcome, ips }) => ({ kind, outcome, ips })),
    [
      { kind: EVENT_KIND.EVENT_KIND_ADD, outcome: EVENT_OUTCOME.EVENT_OUTCOME_OK, ips: ['10.0.0.10'] },
      // It names another netns than the ADD.
      { kind: EVENT_KIND.EVENT_KIND_CHECK, outcome: EVENT_OUTCOME.EVENT_OUTCOME_FAILED, ips: ['10.0.0.10'] },
      { kind: EVENT_KIND.EVENT_KIND_DEL, outcome: EVENT_OUTCOME.EVENT_OUTCOME_OK, ips: ['10.0.0.10'] },
    ],
  );
  t.deepEqual(
    operations[0]?.steps?.map(({ name }) => name),
    ['queue', 'allocate', 'record', 'netlink', 'verify', 'commit'],
  );
  t.regex(operations[1]?.details ?? '', /^netns: attached in /);
  t.deepEqual(
    events.map(({ kind, subject }) => ({ kind, subject })),
    operations.map(({ kind }) => ({ kind, subject: 'default/p1' })),
  );
});

test('operationLog: says of a failed ADD why, what was decided, and what was taken back', async (t) => {
  const { deps, wiring, recorded, events } = scene(t);
  wiring.refusal = new Error('no more veths');
  await attach(deps, addOf(1), PATIENT);
  const [operation] = recorded('p1');
  t.like(operation, {
    kind: EVENT_KIND.EVENT_KIND_ADD,
    outcome: EVENT_OUTCOME.EVENT_OUTCOME_FAILED,
    code: 999,
    text: 'agent: no more veths',
    ips: ['10.0.0.10'],
    eniId: 'eni-1',
  });
  t.deepEqual(
    operation?.steps?.map(({ name }) => name),
    // The last three take it back.
    ['queue', 'allocate', 'record', 'record', 'netlink', 'erase'],
  );
  t.like(events[0], { outcome: EVENT_OUTCOME.EVENT_OUTCOME_FAILED, code: 999 });
});

test('operationLog: says of an ADD without an address why', async (t) => {
  const { deps, recorded } = scene(t, 0);
  await attach(deps, addOf(1), PATIENT);
  const [operation] = recorded('p1');
  t.like(operation, { code: 101, ips: [], eniId: '' });
  t.regex(operation?.text ?? '', /no address left/);
});

test('operationLog: keeps a DEL that cannot be done once, with how often it was tried', async (t) => {
  const { deps, wiring, recorded } = scene(t);
  await attach(deps, addOf(1), PATIENT);
  wiring.unwireRefusal = new Error('EBUSY');
  await detach(deps, { containerId: 'c1', ifName: 'eth0' });
  for (let time = 0; time < 30; time++) await finishReleasing(deps);
  wiring.unwireRefusal = undefined;
  await finishReleasing(deps);
  t.deepEqual(
    recorded('p1').map(({ kind, code, repeats }) => ({ kind, code, repeats })),
    [
      { kind: EVENT_KIND.EVENT_KIND_ADD, code: 0, repeats: 0 },
      { kind: EVENT_KIND.EVENT_KIND_DEL, code: 999, repeats: 30 },
      { kind: EVENT_KIND.EVENT_KIND_DEL, code: 0, repeats: 0 },
    ],
  );
});

test('operationLog: tells of a DEL of what is not here and records nothing of it', async (t) => {
  const { deps, recorder, events } = scene(t);
  await detach(deps, { containerId: 'gone', ifName: 'eth0' });
  t.is(recorder.size, 0);
  t.like(events[0], { kind: EVENT_KIND.EVENT_KIND_DEL, subject: 'gone', text: 'nothing of it is here' });
});

test('operationLog: calls what garbage collection ends GC', async (t) => {
  const { deps, clock, recorded, absent } = scene(t);
  await attach(deps, addOf(1), PATIENT);
  clock.advance(10);
  absent.add(addOf(1).netns);
  await collectInvalid(deps, 'net', []);
  t.is(recorded('p1')[1]?.kind, EVENT_KIND.EVENT_KIND_GC);
});

test('operationLog: records a repair with each Pod that it touched, and tells of it once', async (t) => {
  const { deps, operationLog, state, recorded, events } = scene(t);
  await attach(deps, addOf(1), PATIENT);
  await attach(deps, addOf(2), PATIENT);
  const ofPod = (ip: string): Operation => ({
    kind: 'replace-route',
    route: { table: 3999, dst: `${ip}/32`, oif: 99, oifname: 'eni1' },
  });
  const ofNode: Operation = { kind: 'add-rule', rule: { family: 4, priority: 512, table: 3999 } };
  events.length = 0;
  const done = [ofNode, ofPod('10.0.0.10')];
  const failed = [{ operation: ofPod('10.0.0.11'), error: new Error('EEXIST') }];
  operationLog.repaired({ cause: 'timer', durationMs: 3, done, failed, leases: state.leases.values() });
  t.like(recorded('p1')[1], {
    kind: EVENT_KIND.EVENT_KIND_REPAIR,
    cause: 'timer',
    code: 0,
    operations: ['ip route replace 10.0.0.10/32 dev eni1 table 3999 proto 84'],
  });
  t.like(recorded('p2')[1], { outcome: EVENT_OUTCOME.EVENT_OUTCOME_FAILED, text: 'Error: EEXIST' });
  t.deepEqual(
    recorded('node').map(({ cause, text, operations }) => ({ cause, text, operations })),
    [
      {
        cause: 'timer',
        text: '',
        operations: ['ip -4 rule add pref 512 lookup 3999 proto 84'],
      },
    ],
  );
  t.is(events.length, 1);
  t.like(events[0], { outcome: EVENT_OUTCOME.EVENT_OUTCOME_FAILED, operations: { length: 2 } });
  operationLog.repaired({ cause: 'timer', durationMs: 3, done: [], failed: [], leases: [] });
  t.is(events.length, 1, 'a pass that found nothing is no news');
});

test('operationLog: renders nothing until somebody asks', (t) => {
  const { clock, recorder } = scene(t);
  const operationLog = openOperationLog({ clock, recorder, hub: new EventHub() });
  let rendered = 0;
  const render = (): readonly string[] => [`line ${++rendered}`];
  operationLog.begin('c1/eth0', { kind: 'del', podNamespace: 'a', podName: 'b' });
  operationLog.kernelChanged('c1/eth0', render);
  operationLog.kernelChanged('c2/eth0', render);
  operationLog.end('c1/eth0', { failure: { code: 999, msg: 'no', details: '' } });
  operationLog.report('supply', () => t.fail('nobody watches') as never);
  t.is(rendered, 0);
  t.deepEqual(recorderReply(recorder, 'a/b').pods?.[0]?.operations?.[0]?.operations, ['line 1']);
});

test('operationLog: bears steps and ends of operations that nobody began', (t) => {
  const { operationLog, recorder } = scene(t);
  operationLog.step('c/eth0', 'x');
  operationLog.end('c/eth0', {});
  t.is(recorder.size, 0);
});

test('recorderReply: leaves out Pods that do not fit one message, and says how many', (t) => {
  const recorder = new FlightRecorder();
  const line = 'x'.repeat(100_000);
  for (let pod = 0; pod < 100; pod++) {
    recorder.add(`ns/p${pod}`, {
      ...{ kind: 'add', containerId: `c${pod}`, ifName: 'eth0', atMs: 1, durationMs: 1, steps: [] },
      kernel: [() => [line]],
    });
  }
  const { pods = [], leftOut } = recorderReply(recorder, '');
  t.is(pods.length + (leftOut ?? 0), 100);
  t.true(pods.length > 10 && pods.length * line.length < 4 << 20);
  t.is(pods[0]?.pod, 'ns/p99', 'the newest come first');
  t.is(recorderReply(recorder, 'ns/p7').pods?.length, 11, 'ns/p7 and ns/p70 to ns/p79');
});
