import test from 'ava';
import { countFastLinks } from '../../../agent/repair/count-fast-links.ts';
import type { FilterState } from '../../../dataplane/desired.ts';
import { linkFilters } from '../../../dataplane/plan-fast-path.ts';

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
