import test from 'ava';
import { plural } from '../../../cli/output/plural.ts';

test('plural: one stands without an ending, none and many with it', (t) => {
  t.deepEqual(
    [0, 1, 2].map((count) => plural(count, 'Pod')),
    ['0 Pods', '1 Pod', '2 Pods'],
  );
  t.is(plural(2, 'address'), '2 addresses');
});
