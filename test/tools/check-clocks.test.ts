import test from 'ava';
import { checkClocks, findWallClock } from '../../tools/check-clocks.ts';

const finds = test.macro((t, text: string, lines: readonly number[]) => {
  t.deepEqual(findWallClock(text), lines);
});

test(
  'findWallClock: the present time in every form',
  finds,
  'Date.now()\nnew Date()\n+new Date(a)\nDate.parse(b)',
  [1, 2, 3, 4],
);
test(
  'findWallClock: a clock, called, passed on, taken apart',
  finds,
  'clock.nowMs()\nf({ a: deps.clock.nowMs })\nconst { nowMs } = clock;\nclass A { #clock = 1; b() { this.#clock.nowMs(); } }',
  [1, 2, 3, 4],
);
test('findWallClock: times of others', finds, 'cert.validToDate.getTime()\nids.now()', [1, 2]);
test('findWallClock: a value beside a name', finds, 'call({ deadline: Date.now() + 5 })', [1]);
test(
  'findWallClock: the origin of performance, times of files, Temporal, formats, a global',
  finds,
  'performance.timeOrigin\nstat.mtimeMs\nTemporal.Now.instant()\nconst { birthtime } = stat;\nglobalThis.Date.now()\nnew Intl.DateTimeFormat()',
  [1, 2, 3, 4, 5, 6],
);
test(
  'findWallClock: a clock by any name, in brackets, over several lines, by another name',
  finds,
  "source.nowMs\ndeps['nowMs']()\nconst {\n  nowMs,\n} = deps.time;\nconst { nowMs: read } = it;\nconst now = view.clock?.nowMs;",
  [1, 2, 4, 6, 7],
);
test(
  'findWallClock: after a text with slashes, in a template, in an expression with angle brackets',
  finds,
  "call('http://a', Date.now())\nconst a = `// $\u007bDate.now()} /*`;\nconst b = a < 1 /2/ Date.now(); // */\nconst r = /\\/*/.test(Date());",
  [1, 2, 3, 4],
);
test(
  'findWallClock: not the other clocks, comments, types, fields',
  finds,
  "clock.monotonicMs()\n// Date.now()\nlet at: Date;\nview.nowMs\nvalidateDate(a)\n/** new Date() */\nconst t = 'Date.now()';\ntype T = { at: Date; nowMs(): number };",
  [],
);

test('checkClocks: a new use, one more line, a file that is gone, an entry without a reason', (t) => {
  const why = 'shown to people, nothing is decided by it';
  const sources = [
    { path: 'a.ts', text: 'Date.now()' },
    { path: 'b.ts', text: 'Date.now()\nDate.now()' },
    { path: 'c.ts', text: 'new Date(1)' },
    { path: 'd.ts', text: 'clock.monotonicMs()' },
  ];
  const table = { 'b.ts': { lines: 1, why }, 'c.ts': { lines: 1, why: '' }, 'e.ts': { lines: 1, why } };
  const found = checkClocks(sources, table);
  t.is(found.length, 4, found.join('\n'));
  for (const [index, path] of ['a.ts', 'b.ts', 'e.ts', 'c.ts'].entries()) t.true(found[index]?.includes(path));
  t.deepEqual(checkClocks(sources.slice(0, 1), { 'a.ts': { lines: 1, why } }), []);
});
