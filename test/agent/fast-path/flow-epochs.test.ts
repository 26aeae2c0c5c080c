import test from 'ava';
import { openFlowEpochs } from '../../../agent/fast-path/flow-epochs.ts';
import type { MonitorEvent } from '../../../netlink/monitor.ts';
import { AF_INET, AF_INET6 } from '../../../netlink/uapi/netlink.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

// Only the kind and the operation of a notification are looked at.
const event = (kind: MonitorEvent['kind'], op: 'new' | 'del' = 'new') => ({ kind, op }) as unknown as MonitorEvent;

function scene() {
  const clock = new VirtualClock();
  const causes: string[] = [];
  return {
    clock,
    causes,
    epochs: openFlowEpochs({ background: runInBackground, clock }, 'bpf', (cause) => void causes.push(cause)),
  };
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

/** A flowtable whose end takes a while, and can fail. */
function flowtableScene() {
  const clock = new VirtualClock();
  const causes: string[] = [];
  const table = { isBroken: false };
  const epochs = openFlowEpochs({ background: runInBackground, clock }, 'flowtable', async (cause) => {
    causes.push(cause);
    await clock.sleep(100);
    if (table.isBroken) throw new Error('nft is busy');
  });
  return { clock, causes, epochs, table };
}

const route = (family: number, portid: number): MonitorEvent =>
  ({ kind: 'route', op: 'new', portid, message: { family } }) as unknown as MonitorEvent;

test('openFlowEpochs: a flowtable ends once a second at most, from the end of the last run', async (t) => {
  const { clock, causes, epochs } = flowtableScene();
  for (let ms = 0; ms < 2_199; ms++) {
    epochs.note(event('nftables'));
    await clock.advance(1);
  }
  t.deepEqual(causes, ['nftables', 'nftables']);
  await clock.advance(1_101);
  t.is(causes.length, 3, 'the last change is not left out');
  await clock.advance(10_000);
  t.is(causes.length, 3);
});

test('openFlowEpochs: what the end of a flowtable itself may have caused ends it not again', async (t) => {
  const { clock, causes, epochs } = flowtableScene();
  epochs.note(event('nftables'));
  await clock.advance(50);
  epochs.note(event('overrun'));
  await clock.advance(500);
  epochs.note(event('overrun'));
  await clock.advance(5_000);
  t.deepEqual(causes, ['nftables']);
  epochs.note(event('overrun'));
  t.deepEqual(causes, ['nftables', 'overrun'], 'a later one is of others');
});

test('openFlowEpochs: a flowtable ends where the kernel itself would not end its flows', async (t) => {
  const { clock, causes, epochs } = flowtableScene();
  for (const kind of ['link', 'netconf', 'address', 'neigh', 'qdisc', 'filter'] as const)
    epochs.note(event(kind, 'del'));
  for (const one of [route(AF_INET, 5), route(AF_INET, 0), route(AF_INET6, 0)]) epochs.note(one);
  t.deepEqual(causes, []);
  epochs.note(route(AF_INET6, 5));
  await clock.advance(1_200);
  epochs.note(event('rule'));
  await clock.advance(1_200);
  epochs.forget('repair');
  t.deepEqual(causes, ['route', 'rule', 'repair']);
});

test('openFlowEpochs: a flowtable that could not be ended is ended later', async (t) => {
  const { clock, causes, epochs, table } = flowtableScene();
  table.isBroken = true;
  epochs.note(event('nftables'));
  await clock.advance(1_200);
  t.is(causes.length, 2);
  table.isBroken = false;
  await clock.advance(10_000);
  t.is(causes.length, 3);
});
