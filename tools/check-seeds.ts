/**
 * Checks that random tests take their seeds from one place, `sim/support/seed.ts`, so that each failure can be repeated.
 * Prints every violation and exits 1; prints one line and exits 0 when there is none.
 */
import { globSync, readFileSync } from 'node:fs';

/** The modules that are that place, and the words that this program is tried with. */
const PLACE = [
  'sim/support/seed.ts',
  ...['support/law.ts', 'support/with-seed.ts', 'tools/check-seeds.test.ts'].map((path) => `test/${path}`),
];

const LAW = 'await assertLaw(t, (t) => property) of test/support/law.ts';
const STREAM = 'seededRandom(seed) with the seed of withSeed or seedList';

/** What draws without a seed, and what to write instead. */
const UNSEEDED: readonly { readonly pattern: RegExp; readonly instead: string }[] = [
  { pattern: /\bfc\s*\.\s*(?:assert|check|sample|statistics|configureGlobal)\b/, instead: LAW },
  { pattern: /import\s+(?!fc from|type )[^'";]*from 'fast-check'/, instead: `import fc from 'fast-check', and ${LAW}` },
  { pattern: /\bMath\s*\.\s*random\b/, instead: STREAM },
  { pattern: /\brandomInt\b/, instead: STREAM },
  { pattern: /\benv\s*(?:\.\s*|\[\s*['"])\w*SEED\b/, instead: 'SEED of sim/support/seed.ts' },
];

/** Lists what in a test file draws without a seed, as `line: found; write …`. Pure. */
export function findUnseeded(path: string, text: string): readonly string[] {
  if (PLACE.includes(path)) return [];
  const found = text
    .replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, (comment) => comment.replace(/[^\n]/g, ' '))
    .split('\n')
    .flatMap((line, index) =>
      UNSEEDED.flatMap(({ pattern, instead }) => {
        const match = pattern.exec(line);
        return match === null ? [] : [`${index + 1}: ${match[0]}; write ${instead}`];
      }),
    );
  // What is run with more runs is found by this import: see `findLawFiles`.
  const isHidden = !path.endsWith('.test.ts') && importsLaws(text);
  return isHidden ? [...found, '1: imports laws; only files of tests may'] : found;
}

/** Reports whether a file of tests has more runs when RUNS says so. Pure. */
export function importsLaws(text: string): boolean {
  return /from '(?:\.\.?\/)+(?:support\/)?law\.ts'/.test(text) || /\bseedList\b[^;]*from '[^']*\/seed\.ts'/.test(text);
}

/**
 * Lists the files of tests that have more runs when RUNS says so, outside the folders that need a VPC or a cluster, and of
 * the simulation, whose new seeds are those of `make simulate`.
 */
export function findLawFiles(): readonly string[] {
  return globSync('test/**/*.test.ts', { exclude: ['test/{e2e,cluster,simulation}/**', 'test/**/*.long.test.ts'] })
    .filter((path) => importsLaws(readFileSync(path, 'utf8')))
    .sort();
}

if (import.meta.main) {
  const paths = globSync(['test/**/*.ts', 'sim/**/*.ts']).sort();
  const violations = paths.flatMap((path) =>
    findUnseeded(path, readFileSync(path, 'utf8')).map((found) => `${path}:${found}`),
  );
  for (const violation of violations) console.error(violation);
  console.error(`seeds: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
