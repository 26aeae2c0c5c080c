import test from 'ava';
import { vpcNetworks } from '../../../agent/node/vpc-networks.ts';

const NOTHING = { configured: [], nodeIps: [], ofPrimary: [] };
const beyond = (evidence: Partial<Parameters<typeof vpcNetworks>[0]>) => {
  const always = new Set(vpcNetworks(NOTHING));
  return vpcNetworks({ ...NOTHING, ...evidence }).filter((network) => !always.has(network));
};

test('vpcNetworks: every VPC may have the private ranges', (t) => {
  t.deepEqual(vpcNetworks(NOTHING).toSorted(), [
    '10.0.0.0/8',
    '100.64.0.0/10',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.168.0.0/16',
    'fc00::/7',
  ]);
});

test("vpcNetworks: adds the /16 or /56 around the primary interface's addresses, or their own wider network", (t) => {
  t.deepEqual(beyond({ ofPrimary: ['11.0.1.2/24'] }), ['11.0.0.0/16']);
  t.deepEqual(beyond({ ofPrimary: ['30.20.1.2/12'] }), ['30.16.0.0/12']);
  t.deepEqual(beyond({ ofPrimary: ['2402:4e00:1:2345::9/64'] }), ['2402:4e00:1:2300::/56']);
  t.deepEqual(beyond({ ofPrimary: ['2402:4e00:1:2345::9/128'] }), ['2402:4e00:1:2300::/56'], 'of DHCPv6');
  t.deepEqual(beyond({ ofPrimary: ['203.0.113.7/32'] }), [], 'a public address on the interface');
});

test("vpcNetworks: adds the same around the Node's addresses, and what is configured as it is", (t) => {
  t.deepEqual(beyond({ nodeIps: ['9.1.2.3', '2402:4e00:1:2345::9'] }), ['9.1.0.0/16', '2402:4e00:1:2300::/56']);
  t.deepEqual(beyond({ configured: ['11.0.0.0/8'] }), ['11.0.0.0/8']);
});
