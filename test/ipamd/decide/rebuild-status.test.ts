import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import type { Ids, ObservedEni } from '../../../ipamd/decide/decision.ts';
import { evaluateDrift } from '../../../ipamd/decide/evaluate-drift.ts';
import { rebuildStatus } from '../../../ipamd/decide/rebuild-status.ts';

const SEEN: ObservedEni = {
  eniID: 'eni-00000001',
  mac: '20:90:6f:00:00:01',
  name: 'tke-cls-a-1',
  primaryIP: '10.0.1.10',
  subnetID: 'subnet-a',
  subnetCIDR: '10.0.1.0/24',
  gateway: '10.0.1.1',
  state: 'AVAILABLE',
  instanceID: 'ins-1',
  deviceIndex: 1,
  securityGroups: ['sg-1'],
  ips: ['10.0.1.11', '10.0.1.12'],
  pendingIps: [],
};

function counted(): Ids {
  let serial = 0;
  return { next: () => `id-${++serial}`, now: () => '2026-01-01T00:00:00Z' };
}

function sightOf(seen: ObservedEni) {
  return { enis: new Map([[seen.eniID, seen]]), isComplete: true };
}

/** The object as it is after the ENI was seen whole. */
const HELD: NodeEniConfigStatus = rebuildStatus({ instanceID: 'ins-1' }, {}, sightOf(SEEN), counted());

const keeps = test.macro((t, change: Partial<ObservedEni>) => {
  const sight = sightOf({ ...SEEN, ...change });
  t.is(HELD.eniInfos?.[0]?.state, 'Attached');
  t.deepEqual(evaluateDrift(HELD, sight), []);
  t.is(rebuildStatus(HELD, {}, sight, counted()), HELD);
});

test('rebuildStatus: keeps an ENI on record whose tags the cloud leaves out', keeps, { isForeign: true });
test('rebuildStatus: keeps an ENI on record that is described without its addresses', keeps, {
  primaryIP: '',
  ips: [],
});
test('rebuildStatus: keeps an ENI on record that is described without its MAC', keeps, { mac: '' });
test('rebuildStatus: keeps an ENI on record whose network nobody told', keeps, { subnetCIDR: '', gateway: '' });
test('rebuildStatus: keeps an ENI serving that is being changed where it is', keeps, { state: 'PENDING' });

test('rebuildStatus: keeps an address on record that is being changed', keeps, {
  ips: ['10.0.1.11'],
  pendingIps: ['10.0.1.12'],
});

test('rebuildStatus: keeps an ENI on record after a restore too when its description is not whole, as something new', (t) => {
  const sight = sightOf({ ...SEEN, mac: '', primaryIP: '', ips: [] });
  const rebuilt = rebuildStatus(HELD, { observedSupplyEpoch: 40 }, sight, counted());
  t.deepEqual(
    rebuilt.eniInfos?.map((eni) => [eni.eniID, eni.addresses?.map((address) => address.ip)]),
    [['eni-00000001', ['10.0.1.11', '10.0.1.12']]],
  );
  t.is(rebuilt.supplyEpoch, 41);
});

test('rebuildStatus: takes no ENI without our tags, and none that another object holds', (t) => {
  const empty: NodeEniConfigStatus = { instanceID: 'ins-1' };
  t.deepEqual(rebuildStatus(empty, {}, sightOf({ ...SEEN, isForeign: true }), counted()).eniInfos, []);
  t.deepEqual(rebuildStatus(HELD, {}, sightOf({ ...SEEN, isForeign: true, isOthers: true }), counted()).eniInfos, []);
});
