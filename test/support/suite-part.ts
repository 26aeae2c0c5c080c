import test, { type TestFn } from 'ava';
import { PART_VARIABLE } from '../../tools/parted-files.ts';

/**
 * True in a file `X.long.test.ts`, which belongs to the suite `long`, and in any file while that suite runs. Where cases are
 * many, `X.test.ts` has them all: what is here says which of the two runs a case.
 */
export const IS_LONG = test.meta.file.endsWith('.long.test.ts') || process.env[PART_VARIABLE] === 'long';

/** Returns the cases of the part that runs: those that `isShort` picks, all others in the suite long. */
export function partOf<T>(cases: readonly T[], isShort: (one: T) => boolean): readonly T[] {
  const part = cases.filter((one) => isShort(one) !== IS_LONG);
  if (part.length === 0) throw new Error(`no case is left for ${test.meta.file}`);
  return part;
}

/** Like `test`, and registers nothing. */
const nothing = (): void => undefined;
const unregistered: TestFn = Object.assign(() => undefined, test, {
  skip: nothing,
  serial: Object.assign(() => undefined, test.serial, { skip: nothing }),
});

/** `test` in `make test`; registers nothing in the suite long. */
export const shortTest: TestFn = IS_LONG ? unregistered : test;

/** `test` in the suite long; registers nothing in `make test`. */
export const longTest: TestFn = IS_LONG ? test : unregistered;
