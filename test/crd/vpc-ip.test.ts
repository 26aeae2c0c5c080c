import test from 'ava';
import fc from 'fast-check';
import { vpcIp, vpcIpName } from '../../crd/vpc-ip.ts';
import { ConfigError, decodeOrThrow } from '../../runtime/decode.ts';
import { assertLaw } from '../support/law.ts';

const names = test.macro((t, ip: string, want: string) => t.is(vpcIpName(ip), want));

test('vpcIpName: leaves IPv4 as it is', names, '10.0.8.17', '10.0.8.17');
test('vpcIpName: writes all eight groups of IPv6', names, 'fd00:8::17', 'fd00-0008-0000-0000-0000-0000-0000-0017');
test('vpcIpName: reads an address that begins with zeros', names, '::1', '0000-0000-0000-0000-0000-0000-0000-0001');
test('vpcIpName: reads an address that ends with zeros', names, 'FD00::', 'fd00-0000-0000-0000-0000-0000-0000-0000');
test('vpcIpName: reads IPv4 within IPv6', names, '::ffff:10.0.8.17', '0000-0000-0000-0000-0000-ffff-0a00-0811');

test('vpcIpName: gives every IPv6 address a name that Kubernetes takes', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.ipV6(), (ip) => {
      const name = vpcIpName(ip);
      return /^[a-z0-9]([-a-z0-9]*[a-z0-9])$/.test(name) && name.split('-').length === 8;
    }),
  );
});

const VIP = {
  apiVersion: 'networking.tke.cloud.tencent.com/v1',
  kind: 'VpcIP',
  metadata: { name: '10.0.8.17', labels: { 'tke.cloud.tencent.com/node-name': '10.0.0.1' }, generation: 3 },
  spec: { type: 'Pod', ip: '10.0.8.17', claimRef: { namespace: 'default', name: 'web-0' }, later: 1 },
  status: { phase: 'Assigned' },
};

test('vpcIp: reads what it knows and keeps the whole object', (t) => {
  const decoded = decodeOrThrow(vpcIp, VIP, 'watch');
  t.is(decoded.spec.claimRef?.name, 'web-0');
  t.is(decoded.status?.phase, 'Assigned');
  t.is(decoded.metadata.labels?.['tke.cloud.tencent.com/node-name'], '10.0.0.1');
  t.is(decoded.object, VIP);
});

test('vpcIp: names every fault at once', (t) => {
  const broken = {
    ...VIP,
    kind: 'VpcIp',
    metadata: { name: 'UPPER' },
    spec: { type: 'pod', ip: '10.0.8' },
    status: { intent: { id: 'a' } },
  };
  const error = t.throws(() => decodeOrThrow(vpcIp, broken, 'watch'), { instanceOf: ConfigError });
  t.deepEqual(
    error?.faults.map((fault) => fault.path),
    [
      'kind',
      'metadata.name',
      'spec.type',
      'spec.ip',
      'status.intent.action',
      'status.intent.phase',
      'status.intent.leaderEpoch',
      'status.intent.requestTimeoutSeconds',
      'status.intent.recordedAt',
    ],
  );
});
