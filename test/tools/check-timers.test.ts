import test from 'ava';
import { findTimers, hasOwnClock } from '../../tools/check-timers.ts';

const finds = test.macro((t, text: string, lines: readonly number[]) => {
  t.deepEqual(findTimers(text), lines);
});

test(
  'findTimers: a timer of Node, whatever its delay',
  finds,
  'setTimeout(run, ms)\nsetInterval(run, 5)\nAbortSignal.timeout(LIMIT_MS)\nglobalThis.setTimeout(run)',
  [1, 2, 3, 4],
);
test('findTimers: one that is passed on', finds, 'const start = setTimeout;\nwith_(AbortSignal.timeout)', [1, 2]);
test(
  'findTimers: one by another name',
  finds,
  "import { setTimeout as sleep } from 'node:timers/promises';\nimport { setImmediate } from 'node:timers/promises';",
  [1],
);
test(
  'findTimers: all timers of a module',
  finds,
  "import * as timers from 'node:timers';\nimport others from 'timers/promises';\nimport { immediate } from './timers.ts';",
  [1, 2],
);
test(
  'findTimers: not the timer of a socket, a property, a text or a comment',
  finds,
  "socket.setTimeout(ms, end);\nconst timeout = options.timeout;\nlog('setTimeout'); // setInterval",
  [],
);

test('findTimers, hasOwnClock: in the agent nothing but what opens its machine has the time of the process', (t) => {
  const text = [
    "import { systemClock } from '../runtime/clock.ts';",
    'setImmediate(run);\nperformance.now();\nprocess.hrtime.bigint();',
    'startTimer(run, 5);\nclock.sleep(5);\ntimerOn(clock, run, 5);',
    "background('counting', work());",
    "runInBackground('counting', work());",
  ].join('\n');
  t.deepEqual(findTimers(text), []);
  t.deepEqual(findTimers(text, 'of-process'), [1, 2, 3, 4, 5, 9]);
  t.true(hasOwnClock('agent/repair/repair-loop.ts'));
  t.false(hasOwnClock('agent/main.ts'));
  t.false(hasOwnClock('ipamd/main.ts'));
});
