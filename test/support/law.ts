import type { ExecutionContext } from 'ava';
import fc from 'fast-check';
import { RUNS, seedOf } from '../../sim/support/seed.ts';
import { repeatCommand } from './with-seed.ts';

/** Makes a property of fast-check over inputs `Ts`, synchronous or not, that asserts with `t`. */
type PropertyOf<Ts> = (t: ExecutionContext) => fc.IRawProperty<Ts>;

/** What a law may be asserted with. */
type LawOptions = {
  /** How many inputs are tried, before RUNS multiplies it. */
  readonly numRuns?: number;
  /** Reports the first input that fails instead of a smaller one: where one run is dear. */
  readonly endOnFailure?: boolean;
};

/** fast-check's own number. */
const USUAL_RUNS = 100;

/** Laws that a test has asserted so far: each has inputs of its own. */
const asserted = new WeakMap<ExecutionContext, number>();

/**
 * Asserts that a property holds for random inputs. Their seed follows from SEED, the test's title and how many laws the
 * test has asserted before; RUNS multiplies their number. `propertyOf` gets the `t` that the property has to assert with:
 * what fails on the way to the smallest counterexample is not the test's own failure. When the law fails, the test's log
 * has the counterexample and the command that repeats it, and the test fails as it does for that input.
 */
export async function assertLaw<Ts>(
  t: ExecutionContext,
  propertyOf: PropertyOf<Ts>,
  { numRuns = USUAL_RUNS, endOnFailure = false }: LawOptions = {},
): Promise<void> {
  const nth = (asserted.get(t) ?? 0) + 1;
  asserted.set(t, nth);
  const seed = seedOf(`${t.title} ${nth}`);
  const path = pathOf(seed);
  const options = path === undefined ? { numRuns: numRuns * RUNS, endOnFailure } : { path, endOnFailure: true };
  const details = await explore(t, propertyOf, { seed, ...options });
  if (!details.failed) return;
  const { counterexamplePath } = details;
  t.log(describe(details, t.title, seed));
  if (counterexamplePath === null) throw new Error(`no input was left: ${details.numSkips} did not fit the law`);
  await failAgain(t, propertyOf, { seed, path: counterexamplePath, endOnFailure: true });
}

/** Reads LAW_PATH, `<seed of the law>/<path of fast-check>`: with it, this law alone tries one input only. */
function pathOf(seed: number): string | undefined {
  const [ofLaw, path] = process.env['LAW_PATH']?.split('/') ?? [];
  return ofLaw === String(seed) ? path : undefined;
}

/** Tries inputs. What the property asserts counts for the test only when all hold. */
async function explore<Ts>(
  t: ExecutionContext,
  propertyOf: PropertyOf<Ts>,
  options: fc.Parameters<Ts>,
): Promise<fc.RunDetails<Ts>> {
  let details: fc.RunDetails<Ts> | undefined;
  const attempt = await t.try(async (inner) => {
    details = await fc.check(propertyOf(inner), options);
    inner.pass();
  });
  // An assertion may fail and be caught within the property: then the test fails all the same.
  if (details === undefined || !details.failed) attempt.commit();
  else attempt.discard();
  if (details === undefined) throw new Error('the attempt ended without a result');
  return details;
}

/** Fails the test as the property does for one input. */
async function failAgain<Ts>(
  t: ExecutionContext,
  propertyOf: PropertyOf<Ts>,
  options: fc.Parameters<Ts>,
): Promise<void> {
  const attempt = await t.try(async (inner) => {
    const { failed, errorInstance } = await fc.check(propertyOf(inner), options);
    if (failed) throw errorInstance;
    inner.fail('the same input held when it was tried again: something else than the input decides');
  });
  attempt.commit();
}

function describe<Ts>(details: fc.RunDetails<Ts>, title: string, seed: number): string {
  const { numRuns, numShrinks, counterexample, counterexamplePath } = details;
  const found = `the law failed in run ${numRuns}, made smaller ${numShrinks} times`;
  const input = counterexample === null ? [] : [`for ${fc.stringify(counterexample)}`];
  const path = counterexamplePath === null ? {} : { LAW_PATH: `${seed}/${counterexamplePath}` };
  return [found, ...input, `again: ${repeatCommand(title)}`, `that input alone: ${repeatCommand(title, path)}`].join(
    '\n',
  );
}
