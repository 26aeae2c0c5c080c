import type {
  BatchDeregisterTargetsRequest,
  BatchModifyTargetWeightRequest,
  BatchRegisterTargetsRequest,
  CreateListenerRequest,
  CreateLoadBalancerRequest,
  CreateRuleRequest,
  DeleteLoadBalancerListenersRequest,
  DeleteLoadBalancerRequest,
  DeleteRewriteRequest,
  DeleteRuleRequest,
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
  SetLoadBalancerSecurityGroupsRequest,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import type { DescribeInstancesRequest } from 'tencentcloud-sdk-nodejs/tencentcloud/services/cvm/v20170312/cvm_models.js';
import type {
  DeleteCertificateRequest,
  DescribeCertificateDetailRequest,
  DescribeCertificatesRequest,
  UploadCertificateRequest,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/ssl/v20191205/ssl_models.js';
import type {
  AssumeRoleRequest,
  AssumeRoleWithWebIdentityRequest,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/sts/v20180813/sts_models.js';
import type {
  CreateClusterRouteRequest,
  DeleteClusterRouteRequest,
  DescribeClusterRoutesRequest,
  DescribeVpcCniPodLimitsRequest,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/tke/v20180525/tke_models.js';
import type {
  AllocateAddressesRequest,
  AssignIpv6AddressesRequest,
  AssignPrivateIpAddressesRequest,
  AssociateAddressRequest,
  AssociateNetworkInterfaceSecurityGroupsRequest,
  AttachNetworkInterfaceRequest,
  CreateGlobalRoutesRequest,
  CreateNetworkInterfaceRequest,
  CreateReserveIpAddressesRequest,
  CreateRoutesRequest,
  CreateSecurityGroupRequest,
  DeleteGlobalRoutesRequest,
  DeleteNetworkInterfaceRequest,
  DeleteReserveIpAddressesRequest,
  DeleteRoutesRequest,
  DeleteSecurityGroupRequest,
  DescribeAddressesRequest,
  DescribeGlobalRoutesRequest,
  DescribeNetworkInterfaceLimitRequest,
  DescribeNetworkInterfacesRequest,
  DescribeReserveIpAddressesRequest,
  DescribeRouteTablesRequest,
  DescribeSecurityGroupPoliciesRequest,
  DescribeSecurityGroupsRequest,
  DescribeSubnetsRequest,
  DescribeTaskResultRequest,
  DescribeUsedIpAddressRequest,
  DescribeVpcLimitsRequest,
  DescribeVpcTaskResultRequest,
  DetachNetworkInterfaceRequest,
  DisassociateAddressRequest,
  DisassociateNetworkInterfaceSecurityGroupsRequest,
  MigratePrivateIpAddressRequest,
  ModifyNetworkInterfaceAttributeRequest,
  ModifySecurityGroupPoliciesRequest,
  ReleaseAddressesRequest,
  ReplaceRoutesRequest,
  UnassignIpv6AddressesRequest,
  UnassignPrivateIpAddressesRequest,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/vpc/v20170312/vpc_models.js';

/** The products whose APIs are called; each has its own endpoint and version. */
export type Product = 'vpc' | 'cvm' | 'clb' | 'tke' | 'sts' | 'ssl';

/** The requests of every API that is called, with the SDK's types. */
export type Requests = {
  readonly AllocateAddresses: AllocateAddressesRequest;
  readonly AssignIpv6Addresses: AssignIpv6AddressesRequest;
  readonly AssignPrivateIpAddresses: AssignPrivateIpAddressesRequest;
  readonly AssociateAddress: AssociateAddressRequest;
  readonly AssociateNetworkInterfaceSecurityGroups: AssociateNetworkInterfaceSecurityGroupsRequest;
  readonly AssumeRole: AssumeRoleRequest;
  readonly AssumeRoleWithWebIdentity: AssumeRoleWithWebIdentityRequest;
  readonly AttachNetworkInterface: AttachNetworkInterfaceRequest;
  readonly BatchDeregisterTargets: BatchDeregisterTargetsRequest;
  readonly BatchModifyTargetWeight: BatchModifyTargetWeightRequest;
  readonly BatchRegisterTargets: BatchRegisterTargetsRequest;
  readonly CreateClusterRoute: CreateClusterRouteRequest;
  readonly CreateGlobalRoutes: CreateGlobalRoutesRequest;
  readonly CreateListener: CreateListenerRequest;
  readonly CreateLoadBalancer: CreateLoadBalancerRequest;
  readonly CreateNetworkInterface: CreateNetworkInterfaceRequest;
  readonly CreateReserveIpAddresses: CreateReserveIpAddressesRequest;
  readonly CreateRoutes: CreateRoutesRequest;
  readonly CreateRule: CreateRuleRequest;
  readonly CreateSecurityGroup: CreateSecurityGroupRequest;
  readonly DeleteCertificate: DeleteCertificateRequest;
  readonly DeleteClusterRoute: DeleteClusterRouteRequest;
  readonly DeleteGlobalRoutes: DeleteGlobalRoutesRequest;
  readonly DeleteLoadBalancer: DeleteLoadBalancerRequest;
  readonly DeleteLoadBalancerListeners: DeleteLoadBalancerListenersRequest;
  readonly DeleteNetworkInterface: DeleteNetworkInterfaceRequest;
  readonly DeleteReserveIpAddresses: DeleteReserveIpAddressesRequest;
  readonly DeleteRewrite: DeleteRewriteRequest;
  readonly DeleteRoutes: DeleteRoutesRequest;
  readonly DeleteRule: DeleteRuleRequest;
  readonly DeleteSecurityGroup: DeleteSecurityGroupRequest;
  readonly DescribeAddresses: DescribeAddressesRequest;
  readonly DescribeCertificateDetail: DescribeCertificateDetailRequest;
  readonly DescribeCertificates: DescribeCertificatesRequest;
  readonly DescribeClusterRoutes: DescribeClusterRoutesRequest;
  readonly DescribeGlobalRoutes: DescribeGlobalRoutesRequest;
  readonly DescribeInstances: DescribeInstancesRequest;
  readonly DescribeLBListeners: DescribeLBListenersRequest;
  readonly DescribeListeners: DescribeListenersRequest;
  readonly DescribeLoadBalancerListByCertId: DescribeLoadBalancerListByCertIdRequest;
  readonly DescribeLoadBalancers: DescribeLoadBalancersRequest;
  readonly DescribeNetworkInterfaceLimit: DescribeNetworkInterfaceLimitRequest;
  readonly DescribeNetworkInterfaces: DescribeNetworkInterfacesRequest;
  /** The API has no parameters. */
  readonly DescribeQuota: Readonly<Record<string, never>>;
  readonly DescribeReserveIpAddresses: DescribeReserveIpAddressesRequest;
  readonly DescribeRewrite: DescribeRewriteRequest;
  readonly DescribeRouteTables: DescribeRouteTablesRequest;
  readonly DescribeSecurityGroupPolicies: DescribeSecurityGroupPoliciesRequest;
  readonly DescribeSecurityGroups: DescribeSecurityGroupsRequest;
  readonly DescribeSubnets: DescribeSubnetsRequest;
  readonly DescribeTargetHealth: DescribeTargetHealthRequest;
  readonly DescribeTargets: DescribeTargetsRequest;
  readonly DescribeTaskResult: DescribeTaskResultRequest;
  readonly DescribeTaskStatus: DescribeTaskStatusRequest;
  readonly DescribeUsedIpAddress: DescribeUsedIpAddressRequest;
  readonly DescribeVpcCniPodLimits: DescribeVpcCniPodLimitsRequest;
  readonly DescribeVpcLimits: DescribeVpcLimitsRequest;
  readonly DescribeVpcTaskResult: DescribeVpcTaskResultRequest;
  /** The API has no parameters. */
  readonly DescribeZones: Readonly<Record<string, never>>;
  readonly DetachNetworkInterface: DetachNetworkInterfaceRequest;
  readonly DisassociateAddress: DisassociateAddressRequest;
  readonly DisassociateNetworkInterfaceSecurityGroups: DisassociateNetworkInterfaceSecurityGroupsRequest;
  readonly ManualRewrite: ManualRewriteRequest;
  readonly MigratePrivateIpAddress: MigratePrivateIpAddressRequest;
  readonly ModifyDomainAttributes: ModifyDomainAttributesRequest;
  readonly ModifyListener: ModifyListenerRequest;
  readonly ModifyLoadBalancerAttributes: ModifyLoadBalancerAttributesRequest;
  readonly ModifyNetworkInterfaceAttribute: ModifyNetworkInterfaceAttributeRequest;
  readonly ModifyRule: ModifyRuleRequest;
  readonly ModifySecurityGroupPolicies: ModifySecurityGroupPoliciesRequest;
  readonly ReleaseAddresses: ReleaseAddressesRequest;
  readonly SetLoadBalancerSecurityGroups: SetLoadBalancerSecurityGroupsRequest;
  readonly ReplaceRoutes: ReplaceRoutesRequest;
  readonly UnassignIpv6Addresses: UnassignIpv6AddressesRequest;
  readonly UnassignPrivateIpAddresses: UnassignPrivateIpAddressesRequest;
  readonly UploadCertificate: UploadCertificateRequest;
};

/** Name of an API that is called. */
export type Action = keyof Requests;

/** The product of an API; APIs that are not listed belong to the VPC. */
const PRODUCT_OF: Partial<Record<Action, Product>> = {
  AssumeRole: 'sts',
  AssumeRoleWithWebIdentity: 'sts',
  BatchDeregisterTargets: 'clb',
  BatchModifyTargetWeight: 'clb',
  BatchRegisterTargets: 'clb',
  CreateListener: 'clb',
  CreateClusterRoute: 'tke',
  CreateLoadBalancer: 'clb',
  DeleteClusterRoute: 'tke',
  DeleteLoadBalancer: 'clb',
  DeleteLoadBalancerListeners: 'clb',
  DescribeClusterRoutes: 'tke',
  DescribeInstances: 'cvm',
  DescribeLBListeners: 'clb',
  DescribeListeners: 'clb',
  DescribeLoadBalancerListByCertId: 'clb',
  DescribeLoadBalancers: 'clb',
  DescribeQuota: 'clb',
  DescribeTargetHealth: 'clb',
  DescribeTargets: 'clb',
  DescribeTaskStatus: 'clb',
  DescribeVpcCniPodLimits: 'tke',
  DescribeZones: 'cvm',
  ModifyListener: 'clb',
  ModifyLoadBalancerAttributes: 'clb',
  SetLoadBalancerSecurityGroups: 'clb',
  CreateRule: 'clb',
  DeleteRewrite: 'clb',
  DeleteRule: 'clb',
  DescribeRewrite: 'clb',
  ManualRewrite: 'clb',
  ModifyDomainAttributes: 'clb',
  ModifyRule: 'clb',
  DeleteCertificate: 'ssl',
  DescribeCertificateDetail: 'ssl',
  DescribeCertificates: 'ssl',
  UploadCertificate: 'ssl',
};

/** Returns the product that serves an API. */
export function productOf(action: Action): Product {
  return PRODUCT_OF[action] ?? 'vpc';
}

const DOCUMENTED_PER_SECOND: Partial<Record<Action, number>> = {
  AssignPrivateIpAddresses: 100,
  AttachNetworkInterface: 100,
  CreateNetworkInterface: 100,
  DeleteCertificate: 10,
  DescribeCertificateDetail: 10,
  DescribeCertificates: 10,
  DescribeInstances: 40,
  DescribeNetworkInterfaces: 100,
  DescribeVpcTaskResult: 100,
  DetachNetworkInterface: 100,
  UnassignPrivateIpAddresses: 100,
  UploadCertificate: 10,
};
const DEFAULT_PER_SECOND = 20;

/**
 * Returns the rate limit of an API by its documentation, calls a second; 20 where the documentation has none.
 * @see https://www.tencentcloud.com/document/product/215/15818 "default API request rate limit" (and its siblings)
 */
export function documentedPerSecond(action: string): number {
  return Object.hasOwn(DOCUMENTED_PER_SECOND, action)
    ? (DOCUMENTED_PER_SECOND[action as Action] ?? DEFAULT_PER_SECOND)
    : DEFAULT_PER_SECOND;
}

/** Sends one request and resolves with the `Response` object of its answer; no retry, no pacing. */
export type TencentApi = {
  /** Sends one request. @throws CloudError as the error table classifies it, or the signal's reason */
  call<A extends Action>(action: A, request: Requests[A], signal: AbortSignal): Promise<unknown>;
  /** Drops the present credentials: the next call fetches new ones. */
  renewCredentials(): void;
};
