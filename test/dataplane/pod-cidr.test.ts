import test from 'ava';
import { bridgePodMac } from '../../dataplane/bridge-pod-mac.ts';
import { blockOf, gatewayPrefix, isGatewayPrefix, podCidrOf } from '../../dataplane/pod-cidr.ts';

test('podCidrOf: the gateway is the first address, and host bits are ignored', (t) => {
  t.deepEqual(podCidrOf('192.168.0.64/26'), { cidr: '192.168.0.64/26', gateway: '192.168.0.65', isCurrent: true });
  t.deepEqual(podCidrOf('192.168.0.77/26', false), {
    cidr: '192.168.0.64/26',
    gateway: '192.168.0.65',
    isCurrent: false,
  });
  t.is(podCidrOf('10.1.2.3/8').gateway, '10.0.0.1');
});

test('gatewayPrefix: the gateway with the length of its block', (t) => {
  t.is(gatewayPrefix(blockOf(podCidrOf('192.168.0.64/26'))), '192.168.0.65/26');
});

test('isGatewayPrefix: only the first address of a block is one', (t) => {
  t.true(isGatewayPrefix('192.168.0.65/26'));
  t.false(isGatewayPrefix('192.168.0.66/26'));
  t.false(isGatewayPrefix('192.168.0.65/24'));
});

test('bridgePodMac: the bytes of the address after 0a:58', (t) => {
  t.is(bridgePodMac('172.31.0.70'), '0a:58:ac:1f:00:46');
});
