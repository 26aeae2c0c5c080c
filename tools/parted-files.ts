import { globSync, readFileSync } from 'node:fs';

/** `long` in this variable: a test file that is parted runs the cases that `make test` leaves out. */
export const PART_VARIABLE = 'TKE_ENI_PART';

const IMPORTS_PARTS = /^import .* from '[./]*\/support\/suite-part\.ts';$/m;

/** Lists the test files that have cases for `make test` and others for the suite long: those that import `suite-part.ts`. */
export function findPartedFiles(): readonly string[] {
  return globSync('test/*/**/*.test.ts', { exclude: ['test/**/*.long.test.ts'] })
    .filter((path) => IMPORTS_PARTS.test(readFileSync(path, 'utf8')))
    .sort();
}
