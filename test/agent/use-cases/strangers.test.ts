import test from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import { holdStrangers } from '../../../agent/attachment/hold-strangers.ts';
import { addOf, createTestNode } from './fixtures.ts';

const PATIENT = new AbortController().signal;

test('attach: gives no address that another program has on this node, and says how many there are', async (t) => {
  const { deps, state, wired, close } = createTestNode(3);
  t.teardown(close);
  for (const ip of ['10.0.0.10', '10.0.0.11']) wired.add(ip);
  const outcome = await attach(deps, addOf(1), PATIENT);
  t.deepEqual(outcome.kind === 'attached' && outcome.lease.addresses.map(({ ip }) => ip), ['10.0.0.12']);
  const refused = await attach(deps, addOf(2), PATIENT);
  t.regex(refused.kind === 'failed' ? (refused.failure.details ?? '') : '', /2 in use on this node by other programs/);
  t.is(state.leases.size, 1);
});

test('holdStrangers: counts such addresses as used, gives none of them back, and frees them when nobody has them', async (t) => {
  const { deps, state, wired, close } = createTestNode(3);
  t.teardown(close);
  wired.add('10.0.0.10');
  holdStrangers(deps);
  const { used, surplus } = state.pool.demand({ min: 0, max: 0 });
  t.deepEqual([used, surplus.map(({ ip }) => ip).sort()], [1, ['10.0.0.11', '10.0.0.12']]);
  wired.clear();
  holdStrangers(deps);
  t.is(state.pool.demand({ min: 0, max: 0 }).used, 0);
});
