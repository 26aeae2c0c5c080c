import type {
  BatchDeregisterTargetsRequest,
  BatchModifyTargetWeightRequest,
  BatchRegisterTargetsRequest,
  CreateListenerRequest,
  CreateLoadBalancerRequest,
  CreateRuleRequest,
  DeleteListenerRequest,
  DeleteLoadBalancerListenersRequest,
  DeleteLoadBalancerRequest,
  DeleteRewriteRequest,
  DeleteRuleRequest,
  DeregisterTargetsRequest,
  DescribeLBListenersRequest,
  DescribeListenersRequest,
  DescribeLoadBalancerListByCertIdRequest,
  DescribeLoadBalancersRequest,
  DescribeRewriteRequest,
  DescribeTargetHealthRequest,
  DescribeTargetsRequest,
  DescribeTaskStatusRequest,
  ManualRewriteRequest,
  ModifyDomainAttributesRequest,
  ModifyListenerRequest,
  ModifyLoadBalancerAttributesRequest,
  ModifyRuleRequest,
  ModifyTargetWeightRequest,
  RegisterTargetsRequest,
  SetLoadBalancerSecurityGroupsRequest,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import type { ActionRules, ActionTable } from '../call.ts';
import { describeUsers } from '../certificate-actions.ts';
import { createLoadBalancer, deleteLoadBalancers, modifyAttributes, setSecurityGroups } from './balancers.ts';
import { batchDeregister, batchRegister } from './batch-targets.ts';
import { describeLoadBalancers } from './describe-balancers.ts';
import { describeBackendListeners, describeTargets } from './describe-targets.ts';
import { createListeners, deleteListener, deleteListeners, describeListeners, modifyListener } from './listeners.ts';
import { describeQuota } from './quotas.ts';
import { deleteRewrites, describeRewrites, manualRewrite } from './rewrites.ts';
import { createRules, deleteRules, modifyDomain, modifyRule } from './rules.ts';
import { describeTargetHealth } from './target-health.ts';
import { batchModifyWeight, deregisterTargets, modifyWeight, registerTargets } from './targets.ts';
import { describeTaskStatus } from './tasks.ts';

/** The APIs of load balancers, as far as we call them. Parameters that are not listed are refused. */
export const CLB_ACTIONS: ActionTable = {
  CreateLoadBalancer: action<CreateLoadBalancerRequest>(
    ['LoadBalancerType', 'VpcId'],
    [
      ...(['LoadBalancerName', 'SubnetId', 'Tags', 'ClientToken', 'Number', 'Vip', 'SnatPro'] as const),
      ...(['LoadBalancerPassToTarget', 'DynamicVip', 'InternetAccessible', 'VipIsp', 'MasterZoneId'] as const),
      ...(['SlaveZoneId', 'ZoneId', 'BandwidthPackageId'] as const),
      ...(['SlaType', 'AddressIPVersion', 'Forward', 'ProjectId'] as const),
    ],
    createLoadBalancer,
  ),
  DescribeLoadBalancers: action<DescribeLoadBalancersRequest>(
    [],
    [
      ...(['LoadBalancerIds', 'Offset', 'Limit', 'Filters', 'AdditionalFields', 'LoadBalancerType'] as const),
      ...(['LoadBalancerName', 'LoadBalancerVips', 'BackendPrivateIps', 'VpcId', 'SecurityGroup'] as const),
      ...(['WithRs', 'Forward', 'OrderBy', 'OrderType'] as const),
    ],
    describeLoadBalancers,
  ),
  DescribeLoadBalancerListByCertId: action<DescribeLoadBalancerListByCertIdRequest>(['CertIds'], [], describeUsers),
  ModifyLoadBalancerAttributes: action<ModifyLoadBalancerAttributesRequest>(
    ['LoadBalancerId'],
    ['LoadBalancerName', 'InternetChargeInfo', 'LoadBalancerPassToTarget', 'SnatPro', 'DeleteProtect'],
    modifyAttributes,
  ),
  SetLoadBalancerSecurityGroups: action<SetLoadBalancerSecurityGroupsRequest>(
    ['LoadBalancerId'],
    ['SecurityGroups'],
    setSecurityGroups,
  ),
  DeleteLoadBalancer: action<DeleteLoadBalancerRequest>(['LoadBalancerIds'], ['ForceDelete'], deleteLoadBalancers),
  CreateListener: action<CreateListenerRequest>(
    ['LoadBalancerId', 'Ports', 'Protocol'],
    [
      ...(['ListenerNames', 'HealthCheck', 'Certificate', 'SessionExpireTime', 'Scheduler', 'TargetType'] as const),
      ...(['SessionType', 'DeregisterTargetRst', 'IdleConnectTimeout', 'SnatEnable'] as const),
      ...(['SniSwitch', 'MultiCertInfo'] as const),
    ],
    createListeners,
  ),
  DescribeListeners: action<DescribeListenersRequest>(
    ['LoadBalancerId'],
    ['ListenerIds', 'Protocol', 'Port'],
    describeListeners,
  ),
  ModifyListener: action<ModifyListenerRequest>(
    ['LoadBalancerId', 'ListenerId'],
    [
      ...(['ListenerName', 'HealthCheck', 'Certificate', 'SessionExpireTime', 'Scheduler', 'TargetType'] as const),
      ...(['SessionType', 'DeregisterTargetRst', 'IdleConnectTimeout', 'SnatEnable'] as const),
      ...(['SniSwitch', 'MultiCertInfo'] as const),
    ],
    modifyListener,
  ),
  DeleteListener: action<DeleteListenerRequest>(['LoadBalancerId', 'ListenerId'], [], deleteListener),
  DeleteLoadBalancerListeners: action<DeleteLoadBalancerListenersRequest>(
    ['LoadBalancerId'],
    ['ListenerIds'],
    deleteListeners,
  ),
  CreateRule: action<CreateRuleRequest>(['LoadBalancerId', 'ListenerId', 'Rules'], [], createRules),
  ModifyRule: action<ModifyRuleRequest>(
    ['LoadBalancerId', 'ListenerId', 'LocationId'],
    ['HealthCheck', 'Scheduler', 'SessionExpireTime', 'ForwardType'],
    modifyRule,
  ),
  ModifyDomainAttributes: action<ModifyDomainAttributesRequest>(
    ['LoadBalancerId', 'ListenerId', 'Domain'],
    ['Certificate', 'MultiCertInfo', 'DefaultServer'],
    modifyDomain,
  ),
  DeleteRule: action<DeleteRuleRequest>(
    ['LoadBalancerId', 'ListenerId'],
    ['LocationIds', 'NewDefaultServerDomain'],
    deleteRules,
  ),
  ManualRewrite: action<ManualRewriteRequest>(
    ['LoadBalancerId', 'SourceListenerId', 'TargetListenerId', 'RewriteInfos'],
    [],
    manualRewrite,
  ),
  DescribeRewrite: action<DescribeRewriteRequest>(
    ['LoadBalancerId'],
    ['SourceListenerIds', 'SourceLocationIds'],
    describeRewrites,
  ),
  DeleteRewrite: action<DeleteRewriteRequest>(
    ['LoadBalancerId', 'SourceListenerId', 'TargetListenerId', 'RewriteInfos'],
    [],
    deleteRewrites,
  ),
  RegisterTargets: action<RegisterTargetsRequest>(
    ['LoadBalancerId', 'ListenerId', 'Targets'],
    ['LocationId'],
    registerTargets,
  ),
  DeregisterTargets: action<DeregisterTargetsRequest>(
    ['LoadBalancerId', 'ListenerId', 'Targets'],
    ['LocationId'],
    deregisterTargets,
  ),
  BatchRegisterTargets: action<BatchRegisterTargetsRequest>(['LoadBalancerId', 'Targets'], [], batchRegister),
  BatchDeregisterTargets: action<BatchDeregisterTargetsRequest>(['LoadBalancerId', 'Targets'], [], batchDeregister),
  ModifyTargetWeight: action<ModifyTargetWeightRequest>(
    ['LoadBalancerId', 'ListenerId', 'Targets'],
    ['LocationId', 'Weight'],
    modifyWeight,
  ),
  BatchModifyTargetWeight: action<BatchModifyTargetWeightRequest>(
    ['LoadBalancerId', 'ModifyList'],
    [],
    batchModifyWeight,
  ),
  DescribeTargets: action<DescribeTargetsRequest>(
    ['LoadBalancerId'],
    ['ListenerIds', 'Protocol', 'Port', 'Filters'],
    describeTargets,
  ),
  DescribeTargetHealth: action<DescribeTargetHealthRequest>(
    ['LoadBalancerIds'],
    ['ListenerIds', 'LocationIds'],
    describeTargetHealth,
  ),
  DescribeLBListeners: action<DescribeLBListenersRequest>(['Backends'], [], describeBackendListeners),
  DescribeQuota: action<object>([], [], describeQuota),
  DescribeTaskStatus: action<DescribeTaskStatusRequest>([], ['TaskId', 'DealName'], describeTaskStatus),
};

/** Rules of an API whose parameters are those of the SDK's request. */
function action<R extends object>(
  required: readonly (keyof R & string)[],
  optional: readonly (keyof R & string)[],
  handle: ActionRules['handle'],
): ActionRules {
  return { required, optional, handle };
}
