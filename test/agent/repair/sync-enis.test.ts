import test from 'ava';
import { listPlannedEnis, syncEnis } from '../../../agent/repair/sync-enis.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { retainEnisInUse } from '../../../agent/supply/retain-enis-in-use.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';
import { createTestNode } from '../use-cases/fixtures.ts';

test('syncEnis: plans an ENI that the supply dropped until the last of its Pods is gone', (t) => {
  const { state, deps, close } = createTestNode(0);
  t.teardown(close);
  const [macA, macB] = ['02:00:00:00:00:0a', '02:00:00:00:00:0b'];
  const links = [
    { ifindex: 7, ifname: 'eth1', mac: macA, mtu: 1500 },
    { ifindex: 8, ifname: 'eth2', mac: macB, mtu: 1500 },
  ];
  const place = () => {
    const before = structuredClone([state.eniRecords, state.enis, state.eniProblems, deps.journal.load().enis]);
    const found = listPlannedEnis(state, links);
    t.deepEqual(
      [state.eniRecords, state.enis, state.eniProblems, deps.journal.load().enis],
      before,
      'looking changes nothing',
    );
    const placed = syncEnis({ state, journal: deps.journal, log: silentLogger }, links);
    t.deepEqual(found, placed, 'looking finds what placing does');
    return placed.map(({ eniId }) => eniId);
  };
  const [eniA, eniB] = [sampleEni('eni-a', ['10.0.0.5'], { mac: macA }), sampleEni('eni-b', [], { mac: macB })];
  state.supply = sampleSupply([eniA, eniB]);
  t.deepEqual(place(), ['eni-a', 'eni-b']);

  state.leases.set('c/eth0', sampleLease('c', 'eni-a', ['10.0.0.5']));
  state.supply = retainEnisInUse(sampleSupply([eniB], 2), state.supply, state.leases.values());
  t.deepEqual(place(), ['eni-b', 'eni-a'], 'its Pod goes on');

  state.leases.clear();
  t.deepEqual(place(), ['eni-b'], 'what is of it in the kernel is nobody’s now');
  t.deepEqual([...state.eniRecords.keys()], ['eni-b']);
  t.deepEqual([...state.eniProblems.keys()], []);
});

test('syncEnis: with the role uplinks an ENI has the addresses of the supply, also while its link is missing', (t) => {
  const { deps, close } = createTestNode(0);
  t.teardown(close);
  for (const { eniId } of deps.journal.load().enis) deps.journal.eraseEni(eniId);
  const state = new NodeState(systemClock, 'uplinks');
  const mac = '02:00:00:00:00:0a';
  const link = { ifindex: 7, ifname: 'eth1', mac, mtu: 1500 };
  const sync = (links: readonly (typeof link)[]) => {
    const placed = syncEnis({ state, journal: deps.journal, log: silentLogger }, links);
    t.deepEqual(listPlannedEnis(state, links), placed, 'looking finds what placing does');
    return placed.map(({ podIps = [], table }) => [table, ...podIps]);
  };
  state.supply = sampleSupply([sampleEni('eni-a', ['10.0.0.5', '10.0.0.6'], { mac })]);
  t.deepEqual(sync([link]), [[4007, '10.0.0.5', '10.0.0.6']]);
  t.deepEqual(sync([]), [[4007, '10.0.0.5', '10.0.0.6']], 'rules stay until the link is back');
  state.leases.set('c/eth0', sampleLease('c', 'eni-a', ['10.0.0.5']));
  t.deepEqual(sync([link]), [[4007, '10.0.0.6']], 'the rules of a lease are those of its Pod');
  state.leases.clear();
  state.supply = sampleSupply([sampleEni('eni-a', [], { mac, attached: false, draining: true })]);
  t.deepEqual(sync([link]), [], 'an ENI that is drained goes');
});
