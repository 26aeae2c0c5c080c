import test from 'ava';
import { MAX_BODY_BYTES } from '../../runtime/body-budget.ts';
import { IS_LONG, longTest } from '../support/suite-part.ts';
import { measureWebhook, reviewOf, wrongBodies } from './measure-servers.ts';

/** The memory limit of the webhook's manifest. */
const LIMIT_MIB = 256;

test('webhook: many bodies of 3 MB are refused, and cost no memory', async (t) => {
  const body = reviewOf(`[${Array(1_500_000).fill(1).join(',')}]`);
  t.true(body.length > 2 * MAX_BODY_BYTES);
  const { peakMib, statuses } = await measureWebhook([body], IS_LONG ? 5 : 1);
  t.deepEqual(
    [...statuses.keys()].filter((status) => status !== 413 && status !== 0),
    [],
  );
  t.true(peakMib < LIMIT_MIB, `${peakMib} MiB`);
  t.log(`peak ${peakMib.toFixed(0)} MiB`);
});

longTest('webhook: many bodies of 1 MiB of wrong items stay under its memory limit', async (t) => {
  t.timeout(120_000);
  const bodies = wrongBodies();
  for (const body of bodies) t.true(body.length <= MAX_BODY_BYTES);
  const rounds = 3;
  const { peakMib, statuses } = await measureWebhook(bodies, rounds);
  t.true((statuses.get(200) ?? 0) >= 16 * rounds, JSON.stringify([...statuses]));
  t.true(peakMib < LIMIT_MIB, `${peakMib} MiB`);
  t.log(`peak ${peakMib.toFixed(0)} MiB; answers ${JSON.stringify([...statuses])}`);
});
