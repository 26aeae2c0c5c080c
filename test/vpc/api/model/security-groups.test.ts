/** Security groups of the simulated cloud, with the traps that the documentation names. */
import test from 'ava';
import { ApiError } from '../../../../sim/vpc/api/model/api-error.ts';
import { CloudModel } from '../../../../sim/vpc/api/model/cloud-model.ts';

const VPC = 'vpc-00000001';
const SUBNET = 'subnet-groups00';
const ALL = { Protocol: 'ALL', Port: 'ALL', CidrBlock: '0.0.0.0/0', Action: 'ACCEPT' };
const WEB = { Protocol: 'TCP', Port: '80', CidrBlock: '10.0.0.0/8', Action: 'ACCEPT' };

/** A cloud, and calls of it: an answer, or the code of a refusal. */
function cloudOf() {
  const subnets = [{ subnetId: SUBNET, zone: 'ap-guangzhou-3', cidr: '10.0.0.0/16' }];
  const model = new CloudModel({ vpcId: VPC, subnets, securityGroupIds: ['sg-first001'] });
  let nowMs = 0;
  const call = (action: string, params: object, asOfMs?: number): Readonly<Record<string, unknown>> | string => {
    nowMs += 1_000;
    const product = action.includes('LoadBalancer') ? 'clb' : 'vpc';
    const planTask = () => ({ fate: 'succeed' as const, lastsMs: 1_500 });
    const requestId = `r-${nowMs}`;
    const request = { product, action, params: { ...params }, requestId, nowMs, planTask };
    try {
      return { ...model.handle({ ...request, ...(asOfMs === undefined ? {} : { asOfMs }) }) };
    } catch (error) {
      if (error instanceof ApiError) return error.code;
      throw error;
    }
  };
  const make = (): string => {
    const made = call('CreateSecurityGroup', { GroupName: 'web', GroupDescription: '' });
    return (made as { readonly SecurityGroup: { readonly SecurityGroupId: string } }).SecurityGroup.SecurityGroupId;
  };
  const set = (SecurityGroupId: string, ...Ingress: readonly object[]) =>
    call('ModifySecurityGroupPolicies', {
      SecurityGroupId,
      SecurityGroupPolicySet: { Egress: [ALL], Ingress },
    });
  const ports = (groupId: string) => model.state.securityGroups.rulesOf([groupId]);
  return { model, call, make, set, ports };
}

test('ModifySecurityGroupPolicies: version 0 clears all, whatever else is said', (t) => {
  const { call, make, set, ports } = cloudOf();
  const id = make();
  t.deepEqual(ports(id), []);
  t.is(typeof set(id, WEB), 'object');
  t.is(ports(id).length, 1);
  const SecurityGroupPolicySet = { Version: '0', Egress: [ALL], Ingress: [WEB] };
  t.is(typeof call('ModifySecurityGroupPolicies', { SecurityGroupId: id, SecurityGroupPolicySet }), 'object');
  t.deepEqual(ports(id), []);
});

test('ModifySecurityGroupPolicies: every 0.0.0.0/n admits everyone', (t) => {
  const { make, set, ports } = cloudOf();
  const id = make();
  set(id, { ...WEB, CidrBlock: '0.0.0.0/8' });
  t.deepEqual(ports(id), [{ cidr: '0.0.0.0/0', protocol: 'TCP', port: 80, isAccepted: true }]);
  set(id, { ...WEB, CidrBlock: '192.0.2.7', Port: '8000-8010' });
  t.deepEqual(ports(id), [{ cidr: '192.0.2.7/32', protocol: 'TCP', port: 8_000, lastPort: 8_010, isAccepted: true }]);
});

test('ModifySecurityGroupPolicies: what is not documented is refused, and changes nothing', (t) => {
  const { call, make, set, ports } = cloudOf();
  const id = make();
  set(id, WEB);
  const refused: readonly (readonly [object, string])[] = [
    [{ ...WEB, Port: '80,443' }, 'InvalidParameterValue'],
    [{ ...WEB, Port: '90-80' }, 'InvalidParameterValue'],
    [{ ...WEB, Port: '65536' }, 'InvalidParameterValue'],
    [{ ...WEB, Protocol: 'ALL' }, 'InvalidParameterValue'],
    [{ ...WEB, Protocol: 'SCTP', Port: '80' }, 'InvalidParameterValue'],
    [{ ...WEB, CidrBlock: '10.0.0.0/33' }, 'InvalidParameterValue'],
    [{ ...WEB, CidrBlock: 'fd00::/8' }, 'InvalidParameterValue'],
    [{ ...WEB, Action: 'ALLOW' }, 'InvalidParameterValue'],
    [{ ...WEB, PolicyIndex: 0 }, 'UnknownParameter'],
    [{ ...WEB, Action: null }, 'MissingParameter'],
  ];
  for (const [policy, code] of refused) t.is(set(id, policy), code, JSON.stringify(policy));
  t.is(set(id, WEB, WEB), 'UnsupportedOperation.DuplicatePolicy');
  const without = { SecurityGroupId: id, SecurityGroupPolicySet: { Ingress: [WEB] } };
  t.is(call('ModifySecurityGroupPolicies', without), 'MissingParameter');
  t.is(set('sg-missing0', WEB), 'ResourceNotFound');
  t.is(set('lb-00000001', WEB), 'InvalidParameterValue.Malformed');
  t.deepEqual(ports(id), [{ cidr: '10.0.0.0/8', protocol: 'TCP', port: 80, isAccepted: true }]);
  t.is(call('CreateSecurityGroup', { GroupName: 'a', GroupDescription: '', ClientToken: 'x' }), 'UnknownParameter');
  t.is(
    call('CreateSecurityGroup', { GroupName: 'a'.repeat(61), GroupDescription: '' }),
    'InvalidParameterValue.TooLong',
  );
  t.is(call('DescribeSecurityGroups', { Limit: 100 }), 'InvalidParameter');
});

test('DeleteSecurityGroup: not while a load balancer has it, and its id is that of nothing afterwards', (t) => {
  const { model, call, make } = cloudOf();
  const id = make();
  call('CreateLoadBalancer', { LoadBalancerType: 'OPEN', VpcId: VPC });
  call('DescribeLoadBalancers', {});
  call('DescribeLoadBalancers', {});
  const [LoadBalancerId = ''] = model.state.clb.balancers().keys();
  const bind = (...SecurityGroups: readonly string[]) =>
    call('SetLoadBalancerSecurityGroups', { LoadBalancerId, SecurityGroups });
  t.is(typeof bind(id), 'object');
  t.is(call('DeleteSecurityGroup', { SecurityGroupId: id }), 'ResourceInUse');
  t.is(call('DeleteSecurityGroup', { SecurityGroupId: 'sg-first001' }), 'ResourceInUse');
  // A load balancer that is being deleted still has it.
  call('DeleteLoadBalancer', { LoadBalancerIds: [LoadBalancerId] });
  t.is(call('DeleteSecurityGroup', { SecurityGroupId: id }), 'ResourceInUse');
  t.is(typeof call('DeleteSecurityGroup', { SecurityGroupId: id }), 'object');
  t.is(model.state.clb.balancers().size, 0);
  t.is(call('DeleteSecurityGroup', { SecurityGroupId: id }), 'ResourceNotFound');
  call('CreateLoadBalancer', { LoadBalancerType: 'OPEN', VpcId: VPC });
  call('DescribeLoadBalancers', {});
  call('DescribeLoadBalancers', {});
  const [another = ''] = model.state.clb.balancers().keys();
  const again = { LoadBalancerId: another, SecurityGroups: [id] };
  t.is(call('SetLoadBalancerSecurityGroups', again), 'ResourceNotFound');
});
