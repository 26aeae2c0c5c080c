import test from 'ava';
import fc from 'fast-check';
import { bucketsSince, computeLatency } from '../../../../cli/commands/top/compute-latency.ts';
import { assertLaw } from '../../../support/law.ts';

const bucket = (upToUs: number, count: number) => ({ upToUs, count });

test('computeLatency: spreads calls evenly within their bucket', (t) => {
  const latency = computeLatency([bucket(100, 50), bucket(200, 50), bucket(0, 0)]);
  t.deepEqual(latency, { count: 100, p50: 100, p90: 180, p99: 198 });
});

test('computeLatency: says the lower end of the bucket without a bound', (t) => {
  t.is(computeLatency([bucket(100, 1), bucket(0, 99)])?.p99, 100);
});

test('computeLatency: knows nothing of no calls', (t) => {
  t.is(computeLatency([bucket(100, 0), bucket(0, 0)]), undefined);
  t.is(computeLatency([]), undefined);
});

test('computeLatency: quantiles are ordered and within the bounds, whatever the histogram', async (t) => {
  const bounds = [50, 100, 250, 1_000, 0];
  const histogram = fc.array(fc.nat(1_000), { minLength: 5, maxLength: 5 });
  await assertLaw(t, () =>
    fc.property(histogram, (counts) => {
      const latency = computeLatency(bounds.map((upToUs, index) => bucket(upToUs, counts[index] ?? 0)));
      if (latency === undefined) return counts.every((count) => count === 0);
      return latency.p50 <= latency.p90 && latency.p90 <= latency.p99 && latency.p99 <= 1_000 && latency.p50 >= 0;
    }),
  );
});

test('bucketsSince: subtracts, and starts again when a counter fell', (t) => {
  t.deepEqual(bucketsSince([bucket(100, 5), bucket(0, 2)], [bucket(100, 3), bucket(0, 2)]), [
    bucket(100, 2),
    bucket(0, 0),
  ]);
  t.deepEqual(bucketsSince([bucket(100, 1)], [bucket(100, 3)]), [bucket(100, 1)]);
});
