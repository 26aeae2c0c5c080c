import test from 'ava';
import { renderAllFit, renderFilterResult } from '../../../scheduler/api/render-filter-result.ts';

test('renderAllFit: is the answer without refusals, made once for a list', (t) => {
  for (const names of [[], ['10.0.0.1', '10.0.0.2'], ['a"b', 'ü']]) {
    const made = renderAllFit(names);
    t.is(made.toString(), renderFilterResult({ fitting: names, failed: [], unresolvable: [] }, undefined));
    t.is(renderAllFit(names), made);
    t.deepEqual(JSON.parse(made.toString()), {
      ...{ Nodes: null, NodeNames: names, FailedNodes: {}, FailedAndUnresolvableNodes: {}, Error: '' },
    });
  }
});
