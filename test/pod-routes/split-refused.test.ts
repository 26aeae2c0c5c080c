import test from 'ava';
import fc from 'fast-check';
import { classifyError } from '../../cloud/classify-error.ts';
import type { CloudError } from '../../cloud/cloud-error.ts';
import { inHalves } from '../../pod-routes/split-refused.ts';
import { assertLaw } from '../support/law.ts';

const errorOf = (code: string): CloudError => classifyError({ code, action: 'CreateRoutes', text: 'a test' });
const REFUSALS = ['UnsupportedOperation.Ecmp', 'InvalidParameterValue.Duplicate', 'ResourceNotFound', 'LimitExceeded'];

test('inHalves: law: what is refused fails alone and once, all else is served once, with few calls', async (t) => {
  await assertLaw(t, (inner) =>
    fc.asyncProperty(
      fc.integer({ min: 1, max: 100 }),
      fc.array(fc.integer({ min: 0, max: 99 }), { maxLength: 5 }),
      fc.constantFrom(...REFUSALS),
      async (count, refusedOnes, code) => {
        const items = Array.from({ length: count }, (_, index) => index);
        const refused = new Set(refusedOnes.filter((one) => one < count));
        const served: number[] = [];
        const failed: number[] = [];
        let calls = 0;
        await inHalves(
          items,
          async (some) => {
            calls += 1;
            if (some.some((one) => refused.has(one))) throw errorOf(code);
            served.push(...some);
          },
          (some) => failed.push(...some),
        );
        const sorted = (list: readonly number[]) => list.toSorted((one, other) => one - other);
        inner.deepEqual(failed, sorted([...refused]));
        inner.deepEqual(
          served,
          items.filter((one) => !refused.has(one)),
        );
        inner.true(calls <= 1 + 2 * refused.size * Math.ceil(Math.log2(count)));
      },
    ),
  );
});

test('inHalves: an answer that is lost, missing rights and a throttled call are about all: nothing is called again', async (t) => {
  for (const code of [
    'TIMEOUT',
    'NETWORK',
    'UnauthorizedOperation',
    'AuthFailure.UnauthorizedOperation',
    'RequestLimitExceeded',
  ]) {
    const failures: (readonly number[])[] = [];
    let calls = 0;
    const call = async (): Promise<void> => {
      calls += 1;
      throw errorOf(code);
    };
    await inHalves([1, 2, 3], call, (some) => failures.push(some));
    t.deepEqual({ calls, failures }, { calls: 1, failures: [[1, 2, 3]] }, code);
  }
});

test('inHalves: without items nothing is called; an error that is none of the cloud passes through', async (t) => {
  const fault = new Error('a fault of this program');
  const call = async (): Promise<void> => {
    throw fault;
  };
  await inHalves([], call, () => t.fail());
  t.is(await inHalves([1], call, () => t.fail()).catch((error: unknown) => error), fault);
});
