import test from 'ava';
import type { ReconcileReport } from '../../../agent/repair/reconcile.ts';
import { startRepairLoop } from '../../../agent/repair/repair-loop.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { waitUntil } from '../../support/wait-until.ts';

const QUIET: ReconcileReport = { done: [], failed: [], paused: [], conflicts: [], isStale: false };

function loopThat(reconcile: (pass: number) => ReconcileReport) {
  let passes = 0;
  const loop = startRepairLoop({
    reconcile: async () => reconcile(++passes),
    isRelevant: () => true,
    overrun: () => {},
    invalidateNft: () => {},
    log: silentLogger,
    // No timer: what happens again, happens by itself.
    intervalMs: 3_600_000,
  });
  return { loop, passes: () => passes };
}

test('startRepairLoop: repeats a pass that failed, soon and not for ever', async (t) => {
  const { loop, passes } = loopThat(() => {
    throw new Error('EAGAIN');
  });
  t.teardown(() => loop.close());
  loop.kick('test');
  await waitUntil(() => passes() === 6, { what: 'the last try' });
  t.is(passes(), 6);
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
