import test from 'ava';
import { occupiedNetworks, refusePodCidrs } from '../../../agent/pod-cidr/refuse-pod-cidrs.ts';

const OCCUPIED = [
  { cidr: '10.0.0.0/20', what: 'the network of the primary interface' },
  { cidr: '10.96.0.0/12', what: 'the range of Services' },
];

const CASES: readonly (readonly [cidr: string, why: string | undefined])[] = [
  ['192.168.0.64/26', undefined],
  ['10.0.15.192/26', 'overlaps the network of the primary interface, 10.0.0.0/20'],
  ['10.0.16.0/26', undefined],
  ['10.0.0.0/16', 'overlaps the network of the primary interface, 10.0.0.0/20'],
  ['10.96.0.0/12', 'overlaps the range of Services, 10.96.0.0/12'],
  ['10.111.255.192/26', 'overlaps the range of Services, 10.96.0.0/12'],
  ['10.112.0.0/26', undefined],
  ['fd00::/64', undefined],
];

for (const [cidr, why] of CASES) {
  test(`refusePodCidrs: ${cidr} ${why ?? 'may be used'}`, (t) => {
    const refused = refusePodCidrs([cidr, '172.31.0.0/26'], OCCUPIED);
    t.deepEqual([...refused], why === undefined ? [] : [[cidr, `podCIDR ${cidr} ${why}`]]);
  });
}

test('occupiedNetworks: names the primary interface, subnets of both kinds of ENIs, the VPC, and the Services', (t) => {
  const eni = (eniId: string, subnetCidr: string) => ({
    ...{ eniId, mac: '', attached: true, draining: false, addresses: [] },
    primary: [{ ip: '', family: 4 as const, subnetCidr, gateway: '' }],
  });
  const direct = { enis: [{ ...eni('eni-2', '10.0.2.0/24'), state: 'attached' as const }] };
  const supply = { nodeName: '', epoch: 1, warm: { min: 0, max: 0 }, enis: [eni('eni-1', '10.0.1.0/24')], direct };
  const found = occupiedNetworks({
    ...{ supply: supply as never, primary: ['10.0.0.0/24'] },
    ...{ vpcCidrs: ['10.0.0.0/8'], serviceCidrs: ['172.20.0.0/16'] },
  });
  t.deepEqual(
    found.map(({ cidr, what }) => `${cidr} ${what}`),
    [
      '10.0.0.0/24 the network of the primary interface',
      '10.0.1.0/24 the subnet of eni-1',
      '10.0.2.0/24 the subnet of eni-2',
      '10.0.0.0/8 a network of --vpc-cidr',
      '172.20.0.0/16 the range of Services',
    ],
  );
  t.deepEqual(occupiedNetworks({ supply: undefined, primary: [], vpcCidrs: [], serviceCidrs: [] }), []);
});
