import test from 'ava';
import { countEnis } from '../../../agent/repair/count-enis.ts';
import { NodeState } from '../../../agent/state/node-state.ts';

test('countEnis: a node of a GlobalRoute cluster shows none, so that no alert misses them', (t) => {
  const state = new NodeState();
  t.deepEqual(countEnis(state), { ready: 0, missing: 0 }, 'a node that waits for its first supply');
  state.isBridgeDefault = true;
  t.is(countEnis(state), undefined);
  state.supply = { nodeName: '', epoch: 1, warm: { min: 0, max: 0 }, enis: [] };
  t.deepEqual(countEnis(state), { ready: 0, missing: 0 }, 'a node of a hybrid cluster, whose ENI is awaited');
  state.readyEnis.add('eni-1');
  t.deepEqual(countEnis(state), { ready: 1, missing: 0 });
});
