import test from 'ava';
import { findAsyncCallbacks } from '../../tools/check-callbacks.ts';

const WRONG = [
  'startTimer(async () => { await tick(); }, 5);',
  'startInterval(async function () {}, 5);',
  'timerOn(deps.clock, async () => {}, 5);',
  'setImmediate(\n  async () => {},\n);',
  "socket.on('close', async () => end());",
  'emitter.once(EVENT, async (value) => {});',
  'const tick = async () => {};\nstartInterval(() => tick(), 5);',
  'const tick = async () => {};\nintervalOn(clock, () => tick(), 5);',
  'async function tick() {}\nstartTimer(() => tick(), 5);',
  'class A { async #tick() {}\n start() { startInterval(() => this.#tick(), 5); } }',
];
const RIGHT = [
  "startInterval(() => runInBackground('ticking', tick()), 5);",
  'function tick() {}\nstartTimer(() => tick(), 5);',
  'await setImmediate();',
  '// startTimer(async () => {})',
  "socket.on('close', () => end());",
];

for (const source of WRONG) {
  test(`findAsyncCallbacks: refuses ${JSON.stringify(source)}`, (t) => {
    t.is(findAsyncCallbacks(source).length, 1);
    t.regex(findAsyncCallbacks(source)[0] ?? '', /^\d+: .*runInBackground/);
  });
}

for (const source of RIGHT) {
  test(`findAsyncCallbacks: takes ${JSON.stringify(source)}`, (t) => {
    t.deepEqual(findAsyncCallbacks(source), []);
  });
}
