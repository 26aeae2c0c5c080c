import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { RUNS, SEED } from '../../sim/support/seed.ts';
import { assertLaw } from './law.ts';
import { withSeed } from './with-seed.ts';

/** What an attempt that must fail leaves behind. */
async function failureOf(t: ExecutionContext, body: (t: ExecutionContext) => Promise<void>) {
  const attempt = await t.try(body);
  attempt.discard();
  t.false(attempt.passed);
  const [error] = attempt.errors;
  return { log: attempt.logs.join('\n'), message: `${error?.message} ${String(error?.cause)}` };
}

const LAWS: Readonly<Record<string, (t: ExecutionContext) => fc.IRawProperty<[number]>>> = {
  'an assertion fails': (t) => fc.property(fc.nat(), (number) => void t.true(number < 17)),
  'the property is false': () => fc.property(fc.nat(), (number) => number < 17),
  'the property throws': () =>
    fc.property(fc.nat(), (number) => {
      if (number >= 17) throw new Error(`${number} is too much`);
    }),
  'the property rejects': (t) => fc.asyncProperty(fc.nat(), async (number) => void t.true(number < 17)),
};

for (const [what, propertyOf] of Object.entries(LAWS)) {
  test(`assertLaw: says the smallest counterexample and the commands that repeat it when ${what}`, async (t) => {
    const { log } = await failureOf(t, (inner) => assertLaw(inner, propertyOf));
    t.regex(log, /^for \[17\]$/m);
    const runs = RUNS === 1 ? '' : `RUNS=${RUNS} `;
    const ava = `npx ava --timeout=10m test/support/law.test.ts --match='${t.title} ─ attempt 1'`;
    const part = process.env['TKE_ENI_PART'] === undefined ? '' : 'TKE_ENI_PART=long ';
    t.true(log.includes(`again: SEED=${SEED} ${runs}${part}${ava}`), log);
    t.regex(log, /^that input alone: SEED=\d+ (RUNS=\d+ )?(TKE_ENI_PART=long )?LAW_PATH=\d+\/[\d:]+ npx ava /m);
  });
}

test('assertLaw: fails as the property does for the smallest counterexample', async (t) => {
  const propertyOf = () => LAWS['the property throws']?.(t) ?? fc.property(fc.nat(), () => true);
  t.regex((await failureOf(t, (inner) => assertLaw(inner, propertyOf))).message, /17 is too much/);
});

test('assertLaw: has no failure of the test where a property fails and every input is left out', async (t) => {
  const { message } = await failureOf(t, (inner) => assertLaw(inner, () => fc.property(fc.nat(), () => fc.pre(false))));
  t.regex(message, /did not fit the law/);
});

test('assertLaw: tries as many inputs as it is told, RUNS times, and each law of a test others', async (t) => {
  const tried: number[][] = [];
  for (let law = 0; law < 2; law++) {
    const inputs: number[] = [];
    await assertLaw(t, () => fc.property(fc.nat(), (number) => void inputs.push(number)), { numRuns: 30 });
    tried.push(inputs);
  }
  t.deepEqual(
    tried.map(({ length }) => length),
    [30 * RUNS, 30 * RUNS],
  );
  t.notDeepEqual(tried[0], tried[1]);
});

test('assertLaw: fails where what is caught within the property is an assertion', async (t) => {
  await failureOf(t, (inner) =>
    assertLaw(inner, (one) =>
      fc.property(fc.nat(), () => {
        try {
          one.fail('caught');
        } catch {}
      }),
    ),
  );
});

test('withSeed: gives each test its own seed, and says the command that repeats it when the body fails', async (t) => {
  const seeds: number[] = [];
  const { log } = await failureOf(t, (inner) =>
    withSeed(inner, (seed) => {
      seeds.push(seed);
      inner.is(seed, -1);
    }),
  );
  t.true(log.startsWith(`seed ${SEED}; again: SEED=${SEED} `), log);
  t.is(await withSeed(t, (seed) => seed), await withSeed(t, (seed) => seed));
  t.not(seeds[0], await withSeed(t, (seed) => seed));
});
