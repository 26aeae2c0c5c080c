import test from 'ava';
import { spreadEnqueues } from '../../../ipamd/term/enqueue-nodes.ts';

/** By default ipamd asks so much of the API server, calls for Pods included. */
const CLIENT_QPS = 100;

test('spreadEnqueues: leaves half of the calls to Pods, however many nodes there are', (t) => {
  const names = Array.from({ length: 5_000 }, (_, index) => `node-${index}`);
  const wakes = spreadEnqueues(names, () => false);
  t.deepEqual(
    wakes.map(({ name }) => name),
    names,
  );
  const perSecond = new Map<number, number>();
  for (const { afterMs } of wakes) {
    const second = Math.floor(afterMs / 1_000);
    perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
  }
  t.true(Math.max(...perSecond.values()) <= CLIENT_QPS / 2);
});

test('spreadEnqueues: takes nodes first that were told of a limit, for Pods may wait there', (t) => {
  const wakes = spreadEnqueues(['a', 'b', 'c'], (name) => name === 'c');
  t.deepEqual(
    wakes.map(({ name }) => name),
    ['c', 'a', 'b'],
  );
  t.is(wakes[0]?.afterMs, 0);
});
