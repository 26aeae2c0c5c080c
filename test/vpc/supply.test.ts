import test from 'ava';
import { parse } from 'yaml';
import { supplyOfConfig } from '../../agent/supply/supply-of-config.ts';
import { nodeEniConfig, unknownFields } from '../../crd/node-eni-config.ts';
import { decodeOrThrow } from '../../runtime/decode.ts';
import { createTestVpc } from '../../sim/vpc/vpc.ts';

test('nodeEniConfig: the agent reads from it what the VPC has', async (t) => {
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16', 'fd00:10::/32'],
    subnets: [{ id: 'subnet-a', cidr: '10.0.1.0/24', cidrV6: 'fd00:10:0:1::/64' }],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  try {
    const eni = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-a' });
    const { ip, ipv6 } = await vpc.assignDual('eni-1');
    const leaving = await vpc.assignIp('eni-1');
    vpc.announceRelease('eni-1', leaving);
    const config = decodeOrThrow(nodeEniConfig, parse(vpc.nodeEniConfig('n1')), 'first');
    t.deepEqual(unknownFields(config), []);
    const first = supplyOfConfig(config);
    const second = supplyOfConfig(decodeOrThrow(nodeEniConfig, parse(vpc.nodeEniConfig('n1')), 'second'));
    t.is(first.nodeName, 'n1');
    t.true(second.epoch > first.epoch);
    t.is(first.enis.length, 1, 'the primary NIC is not for Pods');
    const [found] = first.enis;
    t.like(found, { eniId: 'eni-1', mac: eni.mac, attached: true, draining: false });
    t.deepEqual(
      found?.primary.map(({ ip: own, gateway }) => [own, gateway]),
      [
        [eni.primaryIp, eni.gateway],
        [eni.primaryIpv6, eni.gatewayV6],
      ],
    );
    t.deepEqual(
      found?.addresses.map((address) => address.ip),
      [ip, ipv6, leaving],
    );
    t.deepEqual(
      found?.addresses.map((address) => [address.state, address.pairedIp]),
      [
        ['assigned', ipv6],
        ['assigned', ip],
        ['releasing', undefined],
      ],
    );
    t.is(new Set(found?.addresses.map((address) => address.assignmentId)).size, 3);
  } finally {
    await vpc.close();
  }
});
