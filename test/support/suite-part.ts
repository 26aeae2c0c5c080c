import test, { type TestFn } from 'ava';

/**
 * True in a file `X.long.test.ts`, which belongs to the suite `long`. Where cases are many, `X.test.ts` has them all and
 * `X.long.test.ts` imports it: what is here says which of the two runs a case.
 */
export const IS_LONG = test.meta.file.endsWith('.long.test.ts');

/** Returns the cases of the file that runs: those that `isShort` picks in `X.test.ts`, all others in `X.long.test.ts`. */
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

/** `test` in `X.test.ts`; registers nothing in `X.long.test.ts`. */
export const shortTest: TestFn = IS_LONG ? unregistered : test;

/** `test` in `X.long.test.ts`; registers nothing in `X.test.ts`. */
export const longTest: TestFn = IS_LONG ? test : unregistered;
