import test from 'ava';
import type { JournalContent } from '../../../agent/journal/journal-content.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import type { NodeRecord } from '../../../agent/journal/node-record.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { desiredOf } from '../../../inspection/desired/desired-of.ts';
import { isAbsentEni } from '../../../inspection/desired/match-recorded-enis.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { eni, node } from '../../dataplane/fixtures.ts';

const eni5 = { ...eni(5), eniId: 'eni-5', mac: '02:00:00:00:00:05' };

const lease: Lease = {
  containerId: 'c1',
  ifName: 'eth0',
  network: 'tke',
  plugin: 'route-eni',
  netns: '/run/netns/c1',
  podNamespace: 'default',
  podName: 'web-0',
  podUid: 'u1',
  addresses: [{ ip: '10.0.5.10', family: 4, eniId: 'eni-5', assignmentId: 'a1' }],
  eniId: 'eni-5',
  state: 'active',
  hostVeth: { name: 'eni5x10', mac: '02:00:00:00:01:10', ifindex: 10 },
  podMac: '02:00:00:00:02:10',
  mtu: 1500,
  createdAtMs: 0,
};

const journal: JournalContent = {
  leases: [lease],
  cooldowns: [],
  enis: [{ eniId: 'eni-5', mac: eni5.mac, table: eni5.table, slot: eni5.slot }],
  ruleMode: 'compact',
  supply: {
    nodeName: 'n1',
    epoch: 1,
    warm: { min: 1, max: 1 },
    enis: [
      {
        eniId: 'eni-5',
        mac: eni5.mac,
        primary: [{ ip: '10.0.5.5', family: 4, gateway: '10.0.5.1', subnetCidr: '10.0.5.0/24' }],
        attached: true,
        draining: false,
        addresses: [],
      },
    ],
  },
};

const record: NodeRecord = { bootId: 'b', agentRelease: '1', nodeName: 'n1', node, enis: [eni5] };
const known: Known<NodeRecord> = { kind: 'known', value: record };
const unknown: Known<NodeRecord> = { kind: 'unknown', why: 'no node.json', next: 'start the agent' };

function link(ifindex: number, ifname: string, address: string, more: Partial<LinkMessage> = {}): LinkMessage {
  return {
    family: 0,
    type: 1,
    unknown: [],
    ifindex,
    flags: 0,
    change: 0,
    ifname,
    mtu: 1500,
    group: 0,
    address,
    ...more,
  };
}

const LINKS = [
  link(5, 'eth5', eni5.mac),
  link(10, 'eni5x10', '02:00:00:00:01:10', { kind: 'veth', ifalias: 'tke-eni/c1/eth0' }),
];

test('desiredOf: equals the plan of the node for the active leases', (t) => {
  const desired = desiredOf({ journal, node: known }, LINKS);
  const [network] = desired.networks.values();
  if (network === undefined) throw new Error('the lease is planned');
  t.deepEqual(desired.host, planNode({ ...node, ruleMode: 'compact' }, [eni5], [network]));
  t.true(desired.isComplete);
  t.deepEqual(desired.unjudged, []);
});

test('desiredOf: plans the inside of a Pod once its interface is known', (t) => {
  const without = desiredOf({ journal, node: known }, LINKS);
  t.is(without.pods.size, 0);
  const inside = desiredOf({ journal, node: known }, LINKS, new Map([['c1/eth0', 2]])).pods.get('c1/eth0');
  t.deepEqual(inside?.addresses, [{ ifindex: 2, ifname: 'eth0', prefix: '10.0.5.10/32' }]);
  t.deepEqual(inside?.neighs, [{ ifindex: 2, ifname: 'eth0', dst: '169.254.1.1', lladdr: '02:00:00:00:01:10' }]);
});

test('desiredOf: follows an ENI that came back with another index, and keeps the place of one without a link', (t) => {
  const back = desiredOf({ journal, node: known }, [link(77, 'eth9', eni5.mac, { mtu: 8500 })]);
  t.like(back.enis[0], { ifindex: 77, ifname: 'eth9', mtu: 8500, table: eni5.table });
  const gone = desiredOf({ journal, node: known }, LINKS.slice(1)).enis[0];
  t.true(gone !== undefined && isAbsentEni(gone));
});

test('desiredOf: takes a changed MTU of an ENI for a change, not for a wish', (t) => {
  const desired = desiredOf({ journal, node: known }, [link(5, 'eth5', eni5.mac, { mtu: 1400 })]);
  t.is(desired.enis[0]?.mtu, eni5.mtu);
});

test('desiredOf: leaves out leases that are not active, and names those without a link or an ENI', (t) => {
  const leases: readonly Lease[] = [
    { ...lease, containerId: 'c2', state: 'releasing' },
    { ...lease, containerId: 'c3', state: 'pending' },
    { ...lease, containerId: 'c4', hostVeth: { name: 'eni4', mac: '02:00:00:00:01:44', ifindex: 44 } },
    { ...lease, containerId: 'c5', eniId: 'eni-unknown' },
  ];
  const desired = desiredOf({ journal: { ...journal, leases }, node: known }, LINKS);
  t.deepEqual([...desired.networks.keys()], []);
  t.deepEqual(
    desired.unplanned.map(({ key, cause }) => [key, cause]),
    [
      ['c4/eth0', 'no-link'],
      ['c5/eth0', 'no-eni'],
    ],
  );
});

test('desiredOf: takes a node record without the ENI of a Pod for older than the journal, and no plan to delete by', (t) => {
  const old: Known<NodeRecord> = { kind: 'known', value: { ...record, enis: [] } };
  t.false(desiredOf({ journal, node: old }, LINKS).isComplete);
  t.true(desiredOf({ journal: { ...journal, leases: [] }, node: old }, LINKS).isComplete);
});

test('desiredOf: without a node record plans what the journal decides and says what it leaves out', (t) => {
  const desired = desiredOf({ journal, node: unknown }, LINKS);
  t.false(desired.isComplete);
  t.true(desired.unjudged.length > 0);
  t.true(desired.unjudged.every(({ why }) => why === 'no node.json'));
  t.is(desired.host.nft, undefined);
  t.deepEqual(
    desired.host.rules.map(({ priority }) => priority),
    [512, 1537],
  );
  t.false(desired.host.sysctls.some(({ key }) => key.path.includes('eth5') && key.path.includes('rp_filter')));
  const full = desiredOf({ journal, node: known }, LINKS);
  const routes = (of: typeof full) => of.host.routes.filter(({ dst }) => !dst.includes(':'));
  t.deepEqual(routes(desired), routes(full));
});
