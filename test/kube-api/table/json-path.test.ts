import test from 'ava';
import { ageOf } from '../../../sim/kube-api/table/built-in-columns.ts';
import { readJsonPath } from '../../../sim/kube-api/table/json-path.ts';

const OBJECT = {
  metadata: { labels: { 'a.b/c': 'dotted' } },
  status: {
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'Other', status: 'False' },
    ],
    ips: ['1', '2'],
  },
};

const reads = test.macro((t, path: string, want: readonly unknown[]) => t.deepEqual(readJsonPath(OBJECT, path), want));

test('readJsonPath: a field', reads, '.status.ips', [['1', '2']]);
test('readJsonPath: an item', reads, '.status.ips[1]', ['2']);
test('readJsonPath: every item', reads, '.status.ips[*]', ['1', '2']);
test('readJsonPath: a filter', reads, '.status.conditions[?(@.type=="Ready")].status', ['True']);
test('readJsonPath: a filter by what is there', reads, '.status.conditions[?(@.type)].status', ['True', 'False']);
test('readJsonPath: a filter by what is not there', reads, '.status.conditions[?(@.reason)].status', []);
test('readJsonPath: a quoted name', reads, ".metadata.labels['a.b/c']", ['dotted']);
test('readJsonPath: nothing where nothing is', reads, '.status.absent.deeper', []);
test('readJsonPath: nothing for what it cannot read', reads, '.status..ips', []);

const shows = test.macro((t, seconds: number, want: string) =>
  t.is(ageOf('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:00:00Z') + seconds * 1000), want),
);

test('ageOf: seconds', shows, 119, '119s');
test('ageOf: minutes and seconds', shows, 200, '3m20s');
test('ageOf: minutes', shows, 10 * 60, '10m');
test('ageOf: hours and minutes', shows, 4 * 3600 + 60, '4h1m');
test('ageOf: days', shows, 49 * 3600, '2d');
