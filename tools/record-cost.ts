import { appendFileSync, readFileSync } from 'node:fs';
import test from 'ava';
import { childTicks, type FileCost } from './test-cost.ts';

/** Ticks of /proc in a second. @see proc(5), sysconf(3) */
const TICKS_PER_SECOND = 100;

const path = process.env['TKE_ENI_TEST_COSTS'];
if (path !== undefined) {
  // What a test starts is no test, and is tried as it runs elsewhere: without what others compiled, unless Node runs our sources.
  delete process.env['TKE_ENI_TEST_COSTS'];
  process.env['TKE_ENI_HELPER_CACHE'] = process.env['NODE_COMPILE_CACHE'] ?? '';
  delete process.env['NODE_COMPILE_CACHE'];
}

/** What the process had used when the file that runs began. */
let begun = { wallSeconds: 0, cpuSeconds: 0 };

/**
 * Appends what the test file that runs cost, its own processes included, to the file that TKE_ENI_TEST_COSTS names; does
 * nothing where it is unset.
 */
export function recordCost(): void {
  if (path === undefined) return;
  const own = process.cpuUsage();
  const children = childTicks(readFileSync('/proc/self/stat', 'utf8')) / TICKS_PER_SECOND;
  const now = { wallSeconds: performance.now() / 1000, cpuSeconds: (own.user + own.system) / 1e6 + children };
  const cost: FileCost = {
    file: test.meta.file,
    wallSeconds: now.wallSeconds - begun.wallSeconds,
    cpuSeconds: now.cpuSeconds - begun.cpuSeconds,
  };
  appendFileSync(path, `${JSON.stringify(cost)}\n`);
  begun = now;
}
