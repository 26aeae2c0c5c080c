import test from 'ava';
import { runSweep } from '../../../ipamd/audit/run-sweep.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const MINUTE_MS = 60_000;

test('runSweep: a sweep that proves nothing is repeated soon, then ever more rarely, and one that does each interval', async (t) => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const looks: number[] = [];
  const list = async () => {
    looks.push(Math.round(clock.monotonicMs() / MINUTE_MS));
    return looks.length <= 5 ? ('SweepInconsistent' as const) : [];
  };
  const kind = {
    skipMessage: '',
    idOf: String,
    list,
    isOurs: () => true,
    ownerCheck: () => () => true,
    limit: () => 1,
  };
  const config = { syncIntervalMs: 5 * MINUTE_MS, orphanGraceMs: MINUTE_MS, orphanDryRun: false } as never;
  const startMs = Math.round(clock.monotonicMs() / MINUTE_MS);
  const deps = { clock, log: silentLogger, config };
  const swept = runSweep(kind as never, deps, stop.signal).catch(() => undefined);
  await clock.advance(40 * MINUTE_MS);
  stop.abort();
  await clock.run(swept);
  t.deepEqual(
    looks.map((atMs) => atMs - startMs),
    [5, 6, 8, 12, 17, 22, 27, 32, 37],
  );
});
