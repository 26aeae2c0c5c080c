import test from 'ava';
import { sumSamples } from '../../../bench/cluster/prometheus-text.ts';

const TEXT = `# HELP op_seconds_sum not a sample
op_seconds_sum{operation_type="run"} 1.5
op_seconds_sum{operation_type="stop",runtime="runc"} 2
op_seconds_sum{operation_type="stop",runtime=""} 4e-1
op_seconds_sum_of_others 100
plain 7
`;

test('sumSamples: adds up the samples that have all labels', (t) => {
  t.is(sumSamples(TEXT, 'op_seconds_sum'), 3.9);
  t.is(sumSamples(TEXT, 'op_seconds_sum', { operation_type: 'stop' }), 2.4);
  t.is(sumSamples(TEXT, 'op_seconds_sum', { operation_type: 'stop', runtime: 'runc' }), 2);
});

test('sumSamples: reads samples without labels, and says 0 when there are none', (t) => {
  t.is(sumSamples(TEXT, 'plain'), 7);
  t.is(sumSamples(TEXT, 'plain', { any: 'label' }), 0);
  t.is(sumSamples(TEXT, 'op_seconds'), 0);
});
