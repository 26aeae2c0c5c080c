import test from 'ava';
import type { ReconcileReport } from '../../../agent/repair/reconcile.ts';
import { startRepairLoop } from '../../../agent/repair/repair-loop.ts';
import type { MonitorEvent } from '../../../netlink/monitor.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { waitUntil } from '../../support/wait-until.ts';

const QUIET: ReconcileReport = { done: [], failed: [], paused: [], conflicts: [], isStale: false };

const OWN_PORT = 1;

function loopThat(reconcile: (pass: number) => ReconcileReport | Promise<ReconcileReport>) {
  let passes = 0;
  const loop = startRepairLoop({
    background: runInBackground,
    clock: systemClock,
    reconcile: async () => reconcile(++passes),
    note: () => {},
    noteForeign: () => {},
    isOwn: (event) => 'portid' in event && event.portid === OWN_PORT,
    isRelevant: () => true,
    settingsDiffer: () => false,
    overrun: () => {},
    invalidateNft: () => {},
    invalidateFilters: () => {},
    forgetFilters: () => {},
    log: silentLogger,
    // No timer: what happens again, happens by itself.
    intervalMs: 3_600_000,
  });
  return { loop, passes: () => passes };
}

test('startRepairLoop: repeats a pass that failed until one succeeds, each time later', async (t) => {
  const startedMs: number[] = [];
  const { loop, passes } = loopThat((pass) => {
    startedMs.push(performance.now());
    if (pass < 8) throw new Error('EAGAIN');
    return QUIET;
  });
  t.teardown(() => loop.close());
  loop.kick('test');
  await waitUntil(() => passes() === 8, { what: 'a success', timeoutMs: 20_000 });
  const waitsMs = startedMs.slice(1).map((atMs, index) => atMs - (startedMs[index] ?? 0));
  for (const [index, waitMs] of waitsMs.entries()) t.true(waitMs >= 49 * 2 ** index, `wait ${index}: ${waitMs} ms`);
});

test('startRepairLoop: a pass follows when one is asked for by the last', async (t) => {
  const { loop, passes } = loopThat((pass) => (pass === 1 ? { ...QUIET, recheckInMs: 30 } : QUIET));
  t.teardown(() => loop.close());
  const startMs = performance.now();
  await loop.pass('asked for');
  await waitUntil(() => passes() === 2, { what: 'the second pass' });
  t.true(performance.now() - startMs >= 29);
});

test('startRepairLoop: pauses after a pass by how long it took, whatever is notified', async (t) => {
  const passesMs: { readonly startMs: number; readonly endMs: number }[] = [];
  const { loop } = loopThat(async () => {
    const startMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 10));
    passesMs.push({ startMs, endMs: performance.now() });
    return QUIET;
  });
  t.teardown(() => loop.close());
  const flood = setInterval(() => loop.kick('test'), 1);
  t.teardown(() => clearInterval(flood));
  await waitUntil(() => passesMs.length === 6, { what: 'six passes', timeoutMs: 20_000 });
  for (const [index, { startMs, endMs }] of passesMs.slice(0, -1).entries()) {
    const pauseMs = (passesMs[index + 1]?.startMs ?? 0) - endMs;
    // Timers count from the beginning of the turn, in whole milliseconds.
    t.true(pauseMs >= Math.min(500, 4 * (endMs - startMs)) - 5, `${pauseMs} ms after ${endMs - startMs} ms`);
  }
});

test('startRepairLoop: a change of our own causes no pass, one by others does', async (t) => {
  const { loop, passes } = loopThat(() => QUIET);
  t.teardown(() => loop.close());
  const by = (portid: number) => ({ kind: 'rule', op: 'del', portid }) as MonitorEvent;
  await loop.follow(
    (async function* () {
      yield by(OWN_PORT);
    })(),
  );
  await loop.pass('asked for');
  t.is(passes(), 1);
  await loop.follow(
    (async function* () {
      yield by(2);
    })(),
  );
  await waitUntil(() => passes() === 2, { what: 'a pass for the change of others' });
  t.is(passes(), 2);
});

test('startRepairLoop: ends the repetition with the first success', async (t) => {
  const { loop, passes } = loopThat((pass) => {
    if (pass < 3) throw new Error('EAGAIN');
    return QUIET;
  });
  t.teardown(() => loop.close());
  loop.kick('test');
  await waitUntil(() => passes() === 3, { what: 'a success' });
  await loop.pass('asked for');
  t.is(passes(), 4);
});
