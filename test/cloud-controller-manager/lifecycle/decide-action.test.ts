import test from 'ava';
import { readProviderId } from '../../../cloud/provider-id.ts';
import { decideAction } from '../../../cloud-controller-manager/lifecycle/decide-action.ts';

test('an instance that was described without its VPC is one of the VPC that the annotation has', (t) => {
  const instance = {
    ...{ instanceId: 'ins-a1b2c3d4', instanceType: '', cores: 4, zone: '', vpcId: '', subnetId: '', state: '' },
    ...{ privateIps: [], securityGroupIds: [] },
  };
  const kindOf = (annotations: Readonly<Record<string, string>>): string =>
    decideAction({
      node: {
        ...{ isReady: false, isOurs: true, isLeaving: false, taints: [], annotations },
        providerId: readProviderId('qcloud:///100003/ins-a1b2c3d4'),
      },
      observation: { instance, misses: 2, unproven: 0, missedAtMs: 0, askedAtMs: 0 },
      vpcId: 'vpc-00000001',
      ageMs: 600_000,
      rival: undefined,
    }).kind;
  t.is(kindOf({ 'tke.cloud.tencent.com/seen-instance': 'vpc-00000001/ins-a1b2c3d4' }), 'delete');
  t.is(kindOf({ 'tke.cloud.tencent.com/seen-instance': 'vpc-00000002/ins-a1b2c3d4' }), 'kept');
  t.is(kindOf({}), 'kept');
});
