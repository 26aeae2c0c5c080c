import { appendFileSync, readFileSync } from 'node:fs';
import test from 'ava';
import { childTicks, type FileCost } from './test-cost.ts';

/** Ticks of /proc in a second. @see proc(5), sysconf(3) */
const TICKS_PER_SECOND = 100;

/**
 * Appends what a test file cost, its own processes included, to the file that TKE_ENI_TEST_COSTS names; does nothing
 * where it is unset. AVA loads this before each test file (ava.config.js).
 */
export default function recordCost(): void {
  const path = process.env['TKE_ENI_TEST_COSTS'];
  if (path === undefined) return;
  // What a test starts is no test, and is tried as it runs elsewhere: without what others compiled.
  delete process.env['TKE_ENI_TEST_COSTS'];
  delete process.env['NODE_COMPILE_CACHE'];
  process.on('exit', () => {
    const own = process.cpuUsage();
    const children = childTicks(readFileSync('/proc/self/stat', 'utf8')) / TICKS_PER_SECOND;
    const cost: FileCost = {
      file: test.meta.file,
      wallSeconds: performance.now() / 1000,
      cpuSeconds: (own.user + own.system) / 1e6 + children,
    };
    appendFileSync(path, `${JSON.stringify(cost)}\n`);
  });
}
