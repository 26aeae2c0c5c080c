import test from 'ava';
import { findComputedDelays } from '../../tools/check-timers.ts';

const finds = test.macro((t, text: string, lines: readonly number[]) => {
  t.deepEqual(findComputedDelays(text), lines);
});

test(
  'findComputedDelays: a delay of the caller, of a sum with it, of a call',
  finds,
  'setTimeout(run, ms)\nsetInterval(run, 2 * this.everyMs)\nsetTimeout(run, delayOf(x))\nAbortSignal.timeout(leftMs)\nglobalThis.setTimeout(run, ms)',
  [1, 2, 3, 4, 5],
);
test(
  'findComputedDelays: not a constant of the file, nor what is bounded by one',
  finds,
  'const DAY_MS = 24 * 3_600_000;\nsetTimeout(run, DAY_MS / 2)\nsetTimeout(run, 5)\nsetTimeout(run)\nAbortSignal.timeout(Math.min(ms, DAY_MS))\nAbortSignal.timeout(Math.min(ms, MAX_TIMER_MS))',
  [],
);
test(
  'findComputedDelays: a constant that is too long, one of another file, one that is set twice',
  finds,
  'const MONTH_MS = 30 * 86_400_000;\nsetTimeout(run, MONTH_MS)\nsetInterval(run, OTHERS_MS)\nlet x = 1;\nsetTimeout(run, x)',
  [2, 3, 5],
);
test(
  'findComputedDelays: a timer by another name',
  finds,
  "import { setTimeout as sleep } from 'node:timers/promises';\nimport { setImmediate } from 'node:timers/promises';",
  [1],
);
test('findComputedDelays: not the timer of a socket', finds, 'socket.setTimeout(ms, end)', []);
