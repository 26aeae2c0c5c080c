import test from 'ava';
import { decodePolicies } from '../../../cloud/tencent/decode/security-group.ts';

const answerOf = (...Ingress: readonly object[]) => ({ SecurityGroupPolicySet: { Version: '3', Ingress, Egress: [] } });

test('decodePolicies: ports, addresses, templates and groups; rules of IPv6 are left out', (t) => {
  const answer = answerOf(
    { Action: 'ACCEPT', Protocol: 'tcp', Port: '80,8000-9000', CidrBlock: '10.0.0.7', Ipv6CidrBlock: '' },
    { Action: 'DROP', Protocol: 'ALL', Port: 'ALL', CidrBlock: '0.0.0.0/0' },
    { Action: 'ACCEPT', Protocol: 'TCP', Port: '80', CidrBlock: '', Ipv6CidrBlock: '::/0' },
    { Action: 'ACCEPT', Protocol: '', Port: '', CidrBlock: '10.0.0.0/8', ServiceTemplate: { ServiceId: 'ppm-1' } },
    { Action: 'ACCEPT', Protocol: 'TCP', Port: 'all', CidrBlock: null, SecurityGroupId: 'sg-other000' },
    { Action: 'ACCEPT', Protocol: 'TCP', Port: '9-8', CidrBlock: '10.0.0.0/8' },
  );
  t.deepEqual(decodePolicies(answer).rules, [
    {
      isAccepted: true,
      cidr: '10.0.0.7/32',
      protocol: 'TCP',
      ports: [
        [80, 80],
        [8_000, 9_000],
      ],
    },
    { isAccepted: false, cidr: '0.0.0.0/0', protocol: 'ALL' },
    { isAccepted: true, cidr: '10.0.0.0/8' },
    { isAccepted: true, protocol: 'TCP' },
    { isAccepted: true, cidr: '10.0.0.0/8' },
  ]);
  t.deepEqual(decodePolicies({ SecurityGroupPolicySet: { Ingress: null } }).rules, []);
  t.throws(() => decodePolicies({}), { message: /SecurityGroupPolicySet/ });
  t.throws(() => decodePolicies(answerOf({ Protocol: 'TCP' })), { message: /Action/ });
});
