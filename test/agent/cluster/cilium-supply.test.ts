import test from 'ava';
import type { SupplyEni } from '../../../agent/journal/supply.ts';
import { ciliumSupplyOf } from '../../../agent/supply/cilium-supply.ts';
import { decideReleases } from '../../../agent/supply/decide-cilium-status.ts';
import { readCiliumNode } from '../../../crd/cilium-node.ts';

const DUAL: SupplyEni = {
  ...{ eniId: 'eni-a', mac: '02:00:00:00:00:01', attached: true, draining: false, addresses: [] },
  primary: [
    { ip: '10.0.1.2', family: 4, gateway: '10.0.1.1', subnetCidr: '10.0.1.0/24' },
    { ip: 'fd00::2', family: 6, gateway: 'fe80::1', subnetCidr: 'fd00::/64' },
  ],
};

const ipamOf = (pool: object, releases: object = {}) =>
  readCiliumNode({ spec: { ipam: { pool } }, status: { ipam: { 'release-ips': releases } } }).ipam;

const supplyOf = (pool: object) =>
  ciliumSupplyOf({
    ...{ nodeName: 'n1', enis: [DUAL], reservedOwners: [], previous: undefined, isFree: () => true },
    ipam: ipamOf(pool),
  });

test('ciliumSupplyOf: an address of an ENI that is not known is of no other interface', (t) => {
  const { supply, refused } = supplyOf({
    '10.0.1.3': { resource: 'eni-a' },
    '10.0.9.3': { resource: 'eni-x' },
    '192.168.1.3': { resource: 'rack-7' },
    '192.168.1.4': {},
  });
  t.deepEqual([...refused.keys()], ['10.0.9.3']);
  t.regex(refused.get('10.0.9.3') ?? '', /eni-x, which is no ENI in the NodeENIConfig/);
  t.deepEqual(
    supply.enis.map(({ eniId, addresses }) => [eniId, addresses.map(({ ip }) => ip)]),
    [
      ['eni-a', ['10.0.1.3']],
      ['on-link', ['192.168.1.3', '192.168.1.4']],
    ],
  );
});

test('ciliumSupplyOf: an ENI has the families of its addresses in the pool', (t) => {
  const familiesOf = (pool: object) => supplyOf(pool).supply.enis[0]?.primary.map(({ family }) => family);
  t.deepEqual(familiesOf({ '10.0.1.3': { resource: 'eni-a' } }), [4]);
  t.deepEqual(familiesOf({ '10.0.1.3': { resource: 'eni-a' }, 'fd00::3': { resource: 'eni-a' } }), [4, 6]);
});

test('decideReleases: an address that is served to no Pod is given up, and one that is not decided about has no answer', (t) => {
  const ipam = ipamOf({ '10.0.9.3': {}, '10.0.9.4': {} }, { '10.0.9.3': 'marked-for-release' });
  const facts = { ipam, addresses: new Map(), leases: new Map(), isRecorded: true };
  t.deepEqual(decideReleases({ ...facts, refused: new Set(['10.0.9.3']) }), [
    { ip: '10.0.9.3', from: 'marked-for-release', to: 'ready-for-release' },
  ]);
  t.deepEqual(decideReleases({ ...facts, refused: new Set(['10.0.9.4']) }), [
    { ip: '10.0.9.3', from: 'marked-for-release', to: 'do-not-release' },
  ]);
});
