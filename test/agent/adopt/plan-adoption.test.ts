import test from 'ava';
import { type AdoptSources, planAdoption } from '../../../agent/adopt/plan-adoption.ts';
import type { KernelEvidence } from '../../../agent/node/kernel-evidence.ts';
import { sampleEni, sampleSupply } from '../pool/supply-sample.ts';

const MAC = '02:00:00:00:00:0a';
const eni = sampleEni('eni-a', ['10.0.0.5', '10.0.0.6'], {
  mac: MAC,
  primary: [{ ip: '10.0.0.2', family: 4, gateway: '10.0.0.1', subnetCidr: '10.0.0.0/24' }],
});
const VETH = {
  ...{ containerId: 'c1', ifName: 'eth0', name: 'enic1', mac: '02:00:00:00:00:11', ifindex: 20, mtu: 1500 },
  ips: ['10.0.0.5'],
  table: 4007,
};
const KERNEL: KernelEvidence = {
  veths: [VETH],
  enis: [{ table: 4007, slot: 3, mac: MAC, primary: [{ ip: '10.0.0.2', gateway: '10.0.0.1' }] }],
  ipams: [],
  blocks: [],
  ruleMode: 'compact',
};

function adoption(kernel: KernelEvidence, change: Partial<AdoptSources> = {}) {
  const sources = { kernel, supply: sampleSupply([eni]), sandboxes: [], peers: new Map(), sandboxIps: new Map() };
  return planAdoption({ ...sources, ...change });
}

test('planAdoption: rebuilds lease, ENI record and rule mode from the kernel and the supply', (t) => {
  const { leases, enis, ruleMode, unknownEnis } = adoption(KERNEL, {
    sandboxes: [{ id: 'c1', state: 'ready', podName: 'p', podNamespace: 'ns', podUid: 'u' }],
    peers: new Map([['c1/eth0', { netns: '/run/netns/x', podMac: '02:00:00:00:00:12', ips: ['10.0.0.5'] }]]),
  });
  t.deepEqual(leases, [
    {
      ...{ containerId: 'c1', ifName: 'eth0', mtu: 1500, network: '', plugin: 'route-eni', netns: '/run/netns/x' },
      ...{ podNamespace: 'ns', podName: 'p', podUid: 'u', eniId: 'eni-a', state: 'active', createdAtMs: 0 },
      addresses: [{ ip: '10.0.0.5', family: 4, eniId: 'eni-a', assignmentId: 'as-10.0.0.5' }],
      hostVeth: { name: 'enic1', mac: '02:00:00:00:00:11', ifindex: 20 },
      podMac: '02:00:00:00:00:12',
    },
  ]);
  t.deepEqual(enis, [{ eniId: 'eni-a', mac: MAC, table: 4007, slot: 3 }]);
  t.is(ruleMode, 'compact');
  t.deepEqual(unknownEnis, []);
});

test('planAdoption: takes addresses from inside the Pod when the host routes were flushed', (t) => {
  const { leases } = adoption(
    { ...KERNEL, veths: [{ ...VETH, ips: [] }], enis: [{ table: 4007, mac: MAC, primary: [] }] },
    { peers: new Map([['c1/eth0', { netns: '/run/netns/x', podMac: '', ips: ['10.0.0.5'] }]]) },
  );
  t.deepEqual(
    leases.flatMap(({ addresses }) => addresses.map(({ ip }) => ip)),
    ['10.0.0.5'],
  );
});

test('planAdoption: finds the ENI by a Pod address when nothing else of it is left', (t) => {
  const { enis } = adoption({ ...KERNEL, enis: [{ table: 4007, primary: [] }] });
  t.deepEqual(enis, [{ eniId: 'eni-a', mac: MAC, table: 4007, slot: 1 }]);
});

test('planAdoption: holds addresses of an ENI that the supply does not name', (t) => {
  const { leases, unknownEnis, enis } = adoption(KERNEL, { supply: sampleSupply([]) });
  t.is(leases[0]?.eniId, 'unknown-table-4007');
  t.like(unknownEnis[0], { eniId: 'unknown-table-4007', mac: MAC, attached: false, draining: true });
  t.deepEqual(
    unknownEnis[0]?.primary.map(({ ip, gateway }) => ({ ip, gateway })),
    [{ ip: '10.0.0.2', gateway: '10.0.0.1' }],
  );
  t.is(enis[0]?.table, 4007);
});

test('planAdoption: holds an address of an ENI that a main plugin with an uplink has a rule for, and no other', (t) => {
  const ipams = [{ ip: '10.0.0.5', table: 4007 }];
  const kernel = { ...KERNEL, veths: [], ipams, ruledByOthers: ['10.0.0.5', '10.0.0.6', '192.168.7.7'] };
  const { leases } = adoption(kernel, {
    sandboxes: [{ id: 's1', state: 'ready', podName: 'p', podNamespace: 'ns', podUid: '' }],
    sandboxIps: new Map([['s1', ['10.0.0.6']]]),
  });
  t.deepEqual(
    leases.map(({ containerId, plugin, uplink, addresses }) => [containerId, plugin, uplink, addresses[0]?.ip]),
    [
      ['unknown-10.0.0.5', 'ipam', undefined, '10.0.0.5'],
      ['s1', 'ipam', true, '10.0.0.6'],
    ],
  );
});

test('planAdoption: a link in no group of an ENI is of a GlobalRoute Pod, if its address lies in a block', (t) => {
  const port = { ...VETH, containerId: 'c2', name: 'enic2', ifindex: 21, ips: [], table: 0, isPort: true as const };
  const routed = { ...VETH, containerId: 'c3', name: 'enic3', ifindex: 22, ips: ['172.20.0.3'], table: 0 };
  const stranger = { ...VETH, containerId: 'c4', name: 'enic4', ifindex: 23, ips: ['10.0.0.9'], table: 0 };
  const peers = new Map([['c2/eth0', { netns: '/run/netns/y', podMac: '02:00:00:00:00:22', ips: ['172.20.0.2'] }]]);
  const kernel = { ...KERNEL, enis: [], veths: [port, routed, stranger], blocks: ['172.20.0.0/26'] };
  const { leases } = adoption(kernel, { peers, supply: undefined });
  t.is(leases.length, 2);
  t.like(leases[0], {
    ...{ containerId: 'c2', plugin: 'bridge', eniId: 'pod-cidr:172.20.0.0/26', netns: '/run/netns/y' },
    ...{ block: { cidr: '172.20.0.0/26', wiring: 'bridge' }, addresses: [{ ip: '172.20.0.2', family: 4 }] },
  });
  t.like(leases[1], { containerId: 'c3', block: { cidr: '172.20.0.0/26', wiring: 'routed' } });
  const known = adoption({ ...kernel, blocks: [] }, { peers, podCidrs: ['172.20.0.0/26'] });
  t.is(known.leases.length, 2, 'the rules were flushed, and the block is configured');
});
