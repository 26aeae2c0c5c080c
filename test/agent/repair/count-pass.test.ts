import test from 'ava';
import { countEnis, countFastLinks } from '../../../agent/repair/count-pass.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import type { FilterState } from '../../../dataplane/desired.ts';
import { linkFilters } from '../../../dataplane/plan-fast-path.ts';
import { systemClock } from '../../../runtime/clock.ts';

test('countEnis: a node of a GlobalRoute cluster shows none, so that no alert misses them', (t) => {
  const state = new NodeState(systemClock);
  t.deepEqual(countEnis(state), { ready: 0, missing: 0 }, 'a node that waits for its first supply');
  state.isBridgeDefault = true;
  t.is(countEnis(state), undefined);
  state.supply = { nodeName: '', epoch: 1, warm: { min: 0, max: 0 }, enis: [] };
  t.deepEqual(countEnis(state), { ready: 0, missing: 0 }, 'a node of a hybrid cluster, whose ENI is awaited');
  state.readyEnis.add('eni-1');
  t.deepEqual(countEnis(state), { ready: 1, missing: 0 });
});

const of = (ifindex: number): readonly FilterState[] => linkFilters(ifindex, `eth${ifindex}`);

test('countFastLinks: links that a pass found with programs, or gave some, without those that it took away', (t) => {
  const filters = { ours: [...of(5), ...of(6)].map((filter) => ({ ...filter, isCurrent: true })), foreign: [] };
  const attach = of(7).map((filter) => ({ kind: 'attach-filter' as const, filter }));
  const detach = of(5).map((filter) => ({ kind: 'detach-filter' as const, filter }));
  t.is(countFastLinks({}, []), 0);
  t.is(countFastLinks({ filters }, []), 2);
  t.is(countFastLinks({ filters }, attach), 3);
  t.is(countFastLinks({ filters }, [...attach, ...detach]), 2);
  t.is(countFastLinks({ filters }, detach.slice(1)), 2, 'one direction is left');
});
