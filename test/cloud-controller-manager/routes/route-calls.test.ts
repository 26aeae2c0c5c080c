import test from 'ava';
import { measureRoutes } from './measure-routes.ts';

/** Nodes, and the most calls. A table's quota is read; of the cluster service creations take longer than a list is new. */
const CASES = [
  ['global', 210, 4],
  ['table', 210, 5],
  ['cluster', 110, 112],
] as const;
for (const [kind, count, most] of CASES) {
  test(`node-route-controller: --routes=${kind}: ${count} Nodes that are there at the start take at most ${most} calls`, async (t) => {
    const { calls, fewest, quietCalls } = await measureRoutes(kind, count);
    t.true(calls <= most, `${calls} of ${fewest}`);
    t.true(quietCalls <= 60 * (kind === 'global' ? 3 : 1), `${quietCalls} in an hour`);
  });
}
