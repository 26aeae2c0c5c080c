import test from 'ava';
import { openFlowEpochs } from '../../../agent/fast-path/flow-epochs.ts';
import type { MonitorEvent } from '../../../netlink/monitor.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

// Only the kind and the operation of a notification are looked at.
const event = (kind: MonitorEvent['kind'], op: 'new' | 'del' = 'new') => ({ kind, op }) as unknown as MonitorEvent;

function scene() {
  const clock = new VirtualClock();
  const causes: string[] = [];
  return { clock, causes, epochs: openFlowEpochs(clock, (cause) => causes.push(cause)) };
}

test('openFlowEpochs: ends flows at once, and once more at the end of a pause in which others came', async (t) => {
  const { clock, causes, epochs } = scene();
  epochs.note(event('route'));
  t.deepEqual(causes, ['route']);
  for (let count = 0; count < 1_000; count++) epochs.note(event('rule'));
  await clock.advance(49);
  t.deepEqual(causes, ['route']);
  await clock.advance(1);
  t.deepEqual(causes, ['route', 'rule']);
  await clock.advance(1_000);
  t.deepEqual(causes, ['route', 'rule']);
  epochs.note(event('nftables'));
  t.deepEqual(causes, ['route', 'rule', 'nftables']);
});

test('openFlowEpochs: a storm ends them 20 times a second, and never leaves the last change out', async (t) => {
  const { clock, causes, epochs } = scene();
  for (let ms = 0; ms < 1_020; ms++) {
    epochs.note(event('link'));
    await clock.advance(1);
  }
  const before = causes.length;
  t.true(before <= 22, `${before}`);
  await clock.advance(50);
  t.is(causes.length, before + 1);
});

test('openFlowEpochs: what changes no decision of the kernel ends no flow', async (t) => {
  const { clock, causes, epochs } = scene();
  epochs.note(event('address', 'new'));
  for (const kind of ['neigh', 'qdisc', 'filter'] as const) epochs.note(event(kind));
  await clock.advance(100);
  t.deepEqual(causes, []);
  epochs.note(event('address', 'del'));
  t.deepEqual(causes, ['address']);
  for (const kind of ['overrun', 'netconf'] as const) {
    await clock.advance(50);
    epochs.note(event(kind));
  }
  t.deepEqual(causes, ['address', 'overrun', 'netconf']);
});

test('openFlowEpochs: nothing after close', async (t) => {
  const { clock, causes, epochs } = scene();
  epochs.note(event('route'));
  epochs.note(event('route'));
  epochs.close();
  epochs.note(event('route'));
  await clock.advance(100);
  t.deepEqual(causes, ['route']);
});
