import test from 'ava';
import { assignedIps } from '../../../agent/repair/assigned-ips.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';

const IPS = ['10.0.0.5', '10.0.0.6', '10.0.0.7'];

/** A node whose ENI has three addresses. */
function stateOf(role: 'full' | 'uplinks' = 'full'): NodeState {
  const state = new NodeState(systemClock, role);
  state.pool.applySupply(sampleSupply([sampleEni('eni-a', IPS)]));
  return state;
}

test('assignedIps: has every address of the supply, whether a Pod has it, had it, or never did', (t) => {
  const state = stateOf();
  t.deepEqual(assignedIps(state), IPS);
  const [leased] = IPS;
  const lease = sampleLease('c', 'eni-a', [leased ?? '']);
  state.pool.adopt([lease]);
  state.leases.set('c/eth0', lease);
  t.deepEqual(assignedIps(state), IPS, 'a Pod has it');
  state.pool.release({ key: 'c/eth0', nowMs: 0, cooldownMs: 60_000 });
  state.leases.clear();
  t.deepEqual(assignedIps(state), IPS, 'it cools');
});

test('assignedIps: lacks an address that another node may have', (t) => {
  const state = stateOf();
  state.pool.withdraw(['10.0.0.6']);
  t.deepEqual(assignedIps(state), ['10.0.0.5', '10.0.0.7'], 'it is offered');
  state.pool.restore(['10.0.0.6']);
  t.deepEqual(assignedIps(state), IPS, 'the offer was taken back');
  const lease = sampleLease('c', 'eni-a', ['10.0.0.5']);
  state.pool.adopt([lease]);
  state.pool.applySupply(sampleSupply([sampleEni('eni-a', ['10.0.0.6'])], 2));
  t.deepEqual(assignedIps(state), ['10.0.0.6'], 'the supply has one more Pod’s address no more, and a spare one');
});

test('assignedIps: lacks an address whose rules another program keeps', (t) => {
  const state = stateOf();
  const lease = { ...sampleLease('c', 'eni-a', ['10.0.0.5']), plugin: 'ipam' as const };
  state.leases.set('c/eth0', { ...lease, uplink: true });
  t.deepEqual(assignedIps(state), ['10.0.0.6', '10.0.0.7']);
  state.leases.set('c/eth0', lease);
  t.deepEqual(assignedIps(state), IPS, 'the rules are ours');
  t.deepEqual(assignedIps(stateOf('uplinks')), [], 'each address has rules of its own');
});
