/**
 * Checks that the wall clock is read only where `tools/wall-clock.json` says, as often as it says, and why: it may jump,
 * so it measures no span. Prints every violation and exits 1; prints one line and exits 0 when there is none.
 */
import { globSync, readFileSync } from 'node:fs';

/** Where a file reads the wall clock, or times of others that are of a wall clock. */
type WallClockUse = {
  /** Lines with such a reading. */
  readonly lines: number;
  /** What the time is for; why a step of the clock does no harm, or what bounds the harm. */
  readonly why: string;
};

/** What gives a time of a wall clock: `Date` in any form, a clock's `nowMs`, `ids.now()`, dates of certificates. */
const WALL = [
  /(?<![\w$.'])Date(?![\w$'])/,
  /(?<![\w$])nowMs\s*\(/,
  /[cC]lock\s*(?:\(\))?\??\s*\.\s*nowMs\b/,
  /\{[^{}]*\bnowMs\b[^{}]*\}\s*=\s*\S*[cC]lock\b/,
  /\bids\.now\b/,
  /\bvalid(?:To|From)(?:Date)?\b/,
];

/** Lists the lines of a source that read a wall clock, by number from 1. Comments and bare type annotations do not count. Pure. */
export function findWallClock(text: string): readonly number[] {
  return text
    .replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, (comment) => comment.replace(/[^\n]/g, ' '))
    .split('\n')
    .flatMap((line, index) => {
      const code = line.replace(/:\s*Date\b(?!\s*[.(])/g, '').replace(/\bnowMs\(\): number;/g, '');
      return WALL.some((pattern) => pattern.test(code)) ? [index + 1] : [];
    });
}

/** Compares the sources with the table: a use without an entry, another number of lines, an entry without a use. Pure. */
export function checkClocks(
  sources: readonly { readonly path: string; readonly text: string }[],
  table: Readonly<Record<string, WallClockUse>>,
): readonly string[] {
  const found = new Map(sources.map(({ path, text }) => [path, findWallClock(text)]));
  const wrong = [...found].flatMap(([path, lines]) => {
    const wanted = table[path]?.lines ?? 0;
    if (lines.length === wanted) return [];
    const where = lines.length === 0 ? '' : ` (${lines.join(', ')})`;
    return [
      `${path}: ${lines.length} lines read the wall clock${where}, ${wanted} in tools/wall-clock.json; ` +
        'measure spans with monotonicMs, or write there why a step does no harm',
    ];
  });
  const gone = Object.keys(table).filter((path) => !found.has(path));
  const mute = Object.entries(table).filter(([, { why }]) => why.trim().length < MIN_WHY);
  return [
    ...wrong,
    ...gone.map((path) => `tools/wall-clock.json: there is no ${path}`),
    ...mute.map(([path]) => `tools/wall-clock.json: ${path} needs a reason`),
  ];
}

/** A reason of fewer characters is none. */
const MIN_WHY = 20;

if (import.meta.main) {
  const outside = ['node_modules/**', 'dist/**', 'test/**', 'bench/**', 'tools/**', 'examples/**', '*.ts'];
  const paths = globSync('**/*.ts', { exclude: outside }).sort();
  const sources = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }));
  const table = JSON.parse(readFileSync('tools/wall-clock.json', 'utf8')) as Readonly<Record<string, WallClockUse>>;
  const violations = checkClocks(sources, table);
  for (const violation of violations) console.error(violation);
  console.error(`clocks: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
