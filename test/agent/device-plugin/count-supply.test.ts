import test from 'ava';
import { readEniIps } from '../../../agent/device-plugin/count-supply.ts';
import type { Supply } from '../../../agent/journal/supply.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { sampleAddress, sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';

const IPS = ['10.0.0.10', '10.0.0.11', '10.0.0.12'];

test('readEniIps: knows nothing before anybody said anything', (t) => {
  t.is(readEniIps(new NodeState(systemClock), undefined), undefined);
});

test('readEniIps: takes the limits of the newest description, before its addresses are in force', (t) => {
  const supply = withLimits(sampleSupply([sampleEni('eni-a', IPS)]), 27, 12);
  t.deepEqual(readEniIps(new NodeState(systemClock), supply), {
    quota: 27,
    allocatable: 12,
    assigned: 0,
    inUse: 0,
    stranded: 0,
  });
});

test('readEniIps: goes by the journal until a description is there, and while the newest is not believed', (t) => {
  const state = stateOf(withLimits(sampleSupply([sampleEni('eni-a', IPS)]), 9, undefined));
  t.like(readEniIps(state, undefined), { quota: 9, assigned: 3 });
  state.distrusted = 'older than the one in force';
  const old = withLimits(sampleSupply([]), 5, 0);
  t.like(readEniIps(state, old), { quota: 9, allocatable: undefined });
});

test('readEniIps: counts what no Pod can get on an ENI that does not serve', (t) => {
  const state = stateOf(sampleSupply([sampleEni('eni-a', IPS)]));
  t.is(readEniIps(state, undefined)?.stranded, 0, 'before the first look at the kernel nothing is known to be wrong');
  state.eniProblems.set('eni-a', { eniId: 'eni-a', kind: 'missing', text: 'no link' });
  t.like(readEniIps(state, undefined), { assigned: 3, inUse: 1, stranded: 2 });
});

test('readEniIps: does not count an ENI that is still being attached as sick', (t) => {
  const state = stateOf(sampleSupply([{ ...sampleEni('eni-a', IPS), attached: false }]));
  state.eniProblems.set('eni-a', { eniId: 'eni-a', kind: 'missing', text: 'no link' });
  t.is(readEniIps(state, undefined)?.stranded, 0);
});

test('readEniIps: places of kept addresses are places of the node all the same', (t) => {
  const claim = { namespace: 'ns', name: 'web-0' };
  const addresses = IPS.map((ip, i) => sampleAddress(ip, i === 2 ? { claim } : {}));
  const supply = withLimits(sampleSupply([sampleEni('eni-a', [], { addresses })]), 27, undefined);
  const state = stateOf({ ...supply, warm: { ...supply.warm, keptPlaces: 4 } });
  t.like(readEniIps(state, undefined), { quota: 27, assigned: 3, inUse: 1, stranded: 0 });
});

/** A node with one Pod, on the first address. */
function stateOf(supply: Supply): NodeState {
  const state = new NodeState(systemClock);
  const lease = sampleLease('c1', 'eni-a', IPS.slice(0, 1));
  state.restore({ leases: [lease], cooldowns: [], enis: [], supply });
  return state;
}

function withLimits(supply: Supply, limit: number, allocatable: number | undefined): Supply {
  return { ...supply, warm: { ...supply.warm, limit }, ...(allocatable === undefined ? {} : { allocatable }) };
}
