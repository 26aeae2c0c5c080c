import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import {
  NodeMemories,
  type NodeMemory,
  noteUnclear,
  sinceMsOf,
  trackIntents,
} from '../../../ipamd/calls/node-memory.ts';
import { MAX_DESCRIPTION_AGE_MS } from '../../../ipamd/calls/recent-changes.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const EMPTY: NodeEniConfigStatus = {};
const QUEUED_MS = 50_000;

/** The memory of a node whose call began at 0, waited long for its turn, and ended without an answer at {@link QUEUED_MS}. */
function withLateCall(memories: NodeMemories): NodeMemory {
  const memory = memories.of('n1');
  const error = { code: 'TIMEOUT', message: 'no answer' };
  const ended = Promise.resolve();
  memory.calls.set('i1', { kind: 'send', ended, endedMs: QUEUED_MS, outcome: { kind: 'unclear', error } });
  return memory;
}

test('trackIntents: a call that was removed from the object may have its effect until a minute after its end', (t) => {
  const memory = withLateCall(new NodeMemories(new VirtualClock()));
  trackIntents(memory, EMPTY, QUEUED_MS + 1_000);
  t.is(memory.lateUntilMs, QUEUED_MS + MAX_DESCRIPTION_AGE_MS);
});

test('NodeMemories: so may the calls of an object that is gone, also those that still run', (t) => {
  const memories = new NodeMemories(new VirtualClock());
  withLateCall(memories);
  memories.remove('n1', QUEUED_MS);
  t.is(memories.of('n1').lateUntilMs, QUEUED_MS + MAX_DESCRIPTION_AGE_MS);
  memories.of('n1').calls.set('i2', { kind: 'send', ended: Promise.resolve(), endedMs: undefined, outcome: undefined });
  memories.remove('n1', 2 * QUEUED_MS);
  t.is(memories.of('n1').lateUntilMs, 2 * QUEUED_MS + MAX_DESCRIPTION_AGE_MS);
});

test('sinceMsOf: a call without an answer is waited for from its end, whatever is asked about it afterwards', (t) => {
  const memory = new NodeMemories(new VirtualClock()).of('n1');
  memory.intentSinceMs.set('i1', 0);
  t.is(sinceMsOf(memory, 'i1'), 0);
  const call = { ended: Promise.resolve(), outcome: undefined };
  noteUnclear(memory, 'i1', { ...call, kind: 'send', endedMs: QUEUED_MS }, QUEUED_MS);
  t.is(sinceMsOf(memory, 'i1'), QUEUED_MS);
  noteUnclear(memory, 'i1', { ...call, kind: 'resolve', endedMs: 2 * QUEUED_MS }, 2 * QUEUED_MS);
  t.is(sinceMsOf(memory, 'i1'), QUEUED_MS);
  t.is(memory.unclear.get('i1')?.times, 2);
});
