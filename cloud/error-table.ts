import type { QuotaScope, Retry } from './cloud-error.ts';

/** What one error code means for the caller. */
export type ErrorRule = {
  /** The code; a trailing `.*` stands for every code below it. The longest match takes precedence. */
  readonly code: string;
  /** APIs that this rule applies to; absent: all. A rule with APIs takes precedence over one without. */
  readonly actions?: readonly string[];
  /** A text that the message has to contain; such a rule takes precedence over all without. */
  readonly text?: string;
  readonly retry: Retry;
  readonly scope?: QuotaScope;
  /** True when the limit covers all APIs of a product. */
  readonly isAccountWide?: true;
  /** Milliseconds to wait before the same request. */
  readonly afterMs: number;
  readonly means: string;
};

const SOON_MS = 500;
const LATER_MS = 5_000;
const QUOTA_MS = 60_000;
const SUBNET_MS = 30_000;

/**
 * The table of what is retried, what backs off and what trips a breaker. `docs/cloud-calls.md` shows it; a test
 * compares the two. A code that is not in the table is `never`: to repeat an unknown error would use up quotas.
 * @see https://www.tencentcloud.com/document/product/215/15848 (VPC), /213/35116 (CVM): error codes
 */
export const ERROR_TABLE: readonly ErrorRule[] = [
  {
    code: 'RequestLimitExceeded',
    retry: 'throttled',
    afterMs: SOON_MS,
    means: 'more calls a second than the API takes',
  },
  {
    code: 'RequestLimitExceeded.*',
    retry: 'throttled',
    afterMs: SOON_MS,
    means: 'the same, per object',
  },
  {
    code: 'RequestLimitExceeded.UinLimitExceeded',
    retry: 'throttled',
    isAccountWide: true,
    afterMs: SOON_MS,
    means: 'the same for all APIs together: the account calls too often',
  },
  {
    code: 'RequestLimitExceeded.GlobalRegionUinLimitExceeded',
    retry: 'throttled',
    isAccountWide: true,
    afterMs: SOON_MS,
    means: 'the same over all regions',
  },
  {
    code: 'RequestLimitExceeded.IPLimitExceeded',
    retry: 'throttled',
    isAccountWide: true,
    afterMs: SOON_MS,
    means: 'the same for the address that calls',
  },
  {
    code: 'LimitExceeded.ActionLimited',
    retry: 'throttled',
    afterMs: SOON_MS,
    means: "the VPC service's own call limit",
  },

  { code: 'InternalError', retry: 'resolve', afterMs: SOON_MS, means: 'the service failed; it may have acted before' },
  { code: 'InternalError.*', retry: 'resolve', afterMs: SOON_MS, means: 'the same, with the part that failed' },
  {
    code: 'InternalServerError',
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'the same, as older parts of the API say it',
  },
  {
    code: 'FailedOperation.NetDetectTimeOut',
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'the service timed out inside',
  },
  { code: 'TIMEOUT', retry: 'resolve', afterMs: SOON_MS, means: 'no answer in time; it may have acted' },
  { code: 'NETWORK', retry: 'resolve', afterMs: SOON_MS, means: 'the connection broke; it may have acted' },
  {
    code: 'HTTP_*',
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'a gateway answered instead of the service; it may have acted',
  },
  { code: 'BAD_ANSWER', retry: 'resolve', afterMs: SOON_MS, means: 'the answer lacks what it must have' },

  { code: 'ResourceUnavailable', retry: 'backoff', afterMs: LATER_MS, means: 'the service is not available' },
  { code: 'ResourceUnavailable.*', retry: 'backoff', afterMs: LATER_MS, means: 'the same, with the part' },
  {
    code: 'FailedOperation.TaskFailed',
    retry: 'backoff',
    afterMs: LATER_MS,
    means: 'an accepted task failed later; nothing is changed',
  },

  {
    code: 'UnsupportedOperation.MutexOperationTaskRunning',
    retry: 'busy',
    afterMs: SOON_MS,
    means: 'another task works on the object',
  },
  { code: 'OperationDenied.MutexTaskRunning', retry: 'busy', afterMs: SOON_MS, means: 'another task works on the EIP' },
  {
    code: 'UnsupportedOperation.IdempotentProcessing',
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'the first request with this ClientToken still runs',
  },
  {
    code: 'UnsupportedOperation.VersionMismatch',
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'the policies of the security group have changed since they were read',
  },
  {
    code: 'FailedOperation.ResourceInOperating',
    retry: 'busy',
    afterMs: SOON_MS,
    means: 'another task works on the load balancer',
  },
  {
    code: 'UnsupportedOperation.InvalidState',
    retry: 'busy',
    afterMs: LATER_MS,
    means: 'the object is between two states',
  },
  { code: 'UnsupportedOperation.ResourceIsInvalidState', retry: 'busy', afterMs: LATER_MS, means: 'the same' },
  {
    code: 'UnsupportedOperation.AddressStatusNotPermit',
    retry: 'busy',
    afterMs: LATER_MS,
    means: 'the EIP is between two states, or bound',
  },
  { code: 'InvalidAddressIdStatus.NotPermit', retry: 'busy', afterMs: LATER_MS, means: 'the same' },
  { code: 'InvalidAddressState', retry: 'busy', afterMs: LATER_MS, means: 'the same' },

  {
    code: 'ResourceInsufficient.Subnet',
    retry: 'quota',
    scope: 'subnet',
    afterMs: SUBNET_MS,
    means: 'the subnet has too few free addresses',
  },
  {
    code: 'ResourceInsufficient',
    retry: 'quota',
    scope: 'subnet',
    afterMs: SUBNET_MS,
    means: 'the same, as some APIs say it',
  },
  {
    code: 'LimitExceeded.NetworkInterfaceLimitExceeded',
    retry: 'quota',
    scope: 'vpc-enis',
    afterMs: QUOTA_MS,
    means: 'the VPC may hold no more ENIs',
  },
  {
    code: 'LimitExceeded',
    actions: ['AttachNetworkInterface', 'CreateAndAttachNetworkInterface'],
    retry: 'quota',
    scope: 'instance-enis',
    afterMs: QUOTA_MS,
    means: 'the instance may hold no more ENIs',
  },
  {
    code: 'LimitExceeded',
    actions: ['AssignPrivateIpAddresses', 'MigratePrivateIpAddress'],
    retry: 'quota',
    scope: 'eni-ips',
    afterMs: QUOTA_MS,
    means: 'the ENI may hold no more addresses',
  },
  {
    code: 'InvalidParameterValue.LimitExceeded',
    actions: ['AssignPrivateIpAddresses', 'CreateNetworkInterface'],
    retry: 'quota',
    scope: 'eni-ips',
    afterMs: QUOTA_MS,
    means: 'the same, as some APIs say it',
  },
  {
    code: 'LimitExceeded',
    actions: ['CreateGlobalRoutes', 'CreateRoutes'],
    retry: 'quota',
    scope: 'vpc-routes',
    afterMs: QUOTA_MS,
    means: 'the VPC, or the route table, may have no more routes',
  },
  {
    code: 'InternalError.QuotaMaxRtLimit',
    retry: 'quota',
    scope: 'vpc-routes',
    afterMs: QUOTA_MS,
    means: "the cluster's route table may have no more routes",
  },
  {
    code: 'LimitExceeded',
    actions: ['CreateReserveIpAddresses'],
    retry: 'quota',
    scope: 'reserved-ips',
    afterMs: QUOTA_MS,
    means: 'the VPC may have no more reserved addresses',
  },
  {
    code: 'LimitExceeded',
    actions: ['CreateLoadBalancer'],
    retry: 'quota',
    scope: 'load-balancers',
    afterMs: QUOTA_MS,
    means: 'the account may have no more load balancers of this type in the region',
  },
  {
    code: 'LimitExceeded',
    actions: ['CreateListener'],
    retry: 'quota',
    scope: 'listeners',
    afterMs: QUOTA_MS,
    means: 'the load balancer may have no more listeners',
  },
  {
    code: 'LimitExceeded',
    actions: ['CreateRule'],
    retry: 'quota',
    scope: 'rules',
    afterMs: QUOTA_MS,
    means: 'the listener may have no more rules',
  },
  {
    code: 'LimitExceeded',
    actions: ['UploadCertificate'],
    retry: 'quota',
    scope: 'certificates',
    afterMs: QUOTA_MS,
    means: 'the account may have no more certificates',
  },
  {
    code: 'LimitExceeded',
    actions: ['BatchRegisterTargets'],
    retry: 'quota',
    scope: 'targets',
    afterMs: QUOTA_MS,
    means: 'the listener may have no more targets',
  },
  {
    code: 'LimitExceeded',
    actions: ['CreateSecurityGroup'],
    retry: 'quota',
    scope: 'security-groups',
    afterMs: QUOTA_MS,
    means: 'the account may have no more security groups in the region',
  },
  {
    code: 'LimitExceeded',
    actions: ['ModifySecurityGroupPolicies'],
    retry: 'quota',
    scope: 'security-group-policies',
    afterMs: QUOTA_MS,
    means: 'the security group may have no more policies',
  },
  {
    code: 'LimitExceeded.SecurityGroupPolicySet',
    retry: 'quota',
    scope: 'security-group-policies',
    afterMs: QUOTA_MS,
    means: 'the same',
  },
  {
    code: 'UnsupportedOperation.ClbPolicyLimit',
    retry: 'quota',
    scope: 'security-group-policies',
    afterMs: QUOTA_MS,
    means: 'the same, of a group that a load balancer is in',
  },
  {
    code: 'LimitExceeded.Address',
    retry: 'quota',
    scope: 'eni-ips',
    afterMs: QUOTA_MS,
    means: 'the ENI may hold no more IPv6 addresses',
  },
  {
    code: 'AddressQuotaLimitExceeded',
    retry: 'quota',
    scope: 'eips',
    afterMs: QUOTA_MS,
    means: 'the account may hold no more EIPs in the region',
  },
  {
    code: 'AddressQuotaLimitExceeded.*',
    retry: 'quota',
    scope: 'eips',
    afterMs: QUOTA_MS,
    means: 'as many EIPs were allocated today as may be',
  },
  {
    code: 'LimitExceeded.InstanceAddressQuota',
    retry: 'quota',
    scope: 'instance-eips',
    afterMs: QUOTA_MS,
    means: 'the instance may hold no more EIPs',
  },
  { code: 'LimitExceeded', retry: 'quota', scope: 'account', afterMs: QUOTA_MS, means: 'some other quota' },
  { code: 'LimitExceeded.*', retry: 'quota', scope: 'account', afterMs: QUOTA_MS, means: 'some other quota' },

  { code: 'AuthFailure.TokenFailure', retry: 'credentials', afterMs: 0, means: 'the temporary key is expired' },
  { code: 'AuthFailure.SecretIdNotFound', retry: 'credentials', afterMs: 0, means: 'the key was rotated away' },
  {
    code: 'AuthFailure.SignatureFailure',
    retry: 'credentials',
    afterMs: 0,
    means: 'key and secret do not belong together',
  },
  { code: 'AuthFailure.InvalidSecretId', retry: 'credentials', afterMs: 0, means: 'the key is none of this service' },
  { code: 'CREDENTIALS', retry: 'credentials', afterMs: LATER_MS, means: 'no source of credentials gave any' },

  { code: 'ResourceNotFound', retry: 'gone', afterMs: 0, means: 'no such object (any more)' },
  { code: 'ResourceNotFound.*', retry: 'gone', afterMs: 0, means: 'the same' },
  {
    code: 'InternalError.RouteTableNotFound',
    retry: 'gone',
    afterMs: 0,
    means: 'the cluster has no route table of that name',
  },
  {
    code: 'InternalError.DbRecordNotFound',
    actions: ['DeleteClusterRoute'],
    retry: 'gone',
    afterMs: 0,
    means: "no such route in the cluster's route table (any more)",
  },
  { code: 'InvalidParameter.LBIdNotFound', retry: 'gone', afterMs: 0, means: 'no such load balancer (any more)' },
  { code: '*', text: 'LoadBalancer not exist', retry: 'gone', afterMs: 0, means: 'the same, as some APIs say it' },
  { code: '*', text: 'LB not exist', retry: 'gone', afterMs: 0, means: 'the same' },
  { code: 'InvalidParameter.ListenerIdNotFound', retry: 'gone', afterMs: 0, means: 'no such listener (any more)' },
  {
    code: 'InvalidParameter',
    text: 'some ListenerId',
    retry: 'gone',
    afterMs: 0,
    means: 'one of these listeners does not exist (any more)',
  },
  { code: 'InvalidParameter.LocationNotFound', retry: 'gone', afterMs: 0, means: 'no such rule or domain (any more)' },
  { code: 'InvalidParameter.SomeRewriteNotFound', retry: 'gone', afterMs: 0, means: 'no such redirect (any more)' },
  { code: 'FailedOperation.CertificateNotFound', retry: 'gone', afterMs: 0, means: 'no such certificate (any more)' },
  { code: 'InvalidAddressId.NotFound', retry: 'gone', afterMs: 0, means: 'no such EIP (any more)' },
  { code: 'InvalidParameterValue.AddressNotFound', retry: 'gone', afterMs: 0, means: 'the same' },
  { code: 'InvalidInstanceId.NotFound', retry: 'gone', afterMs: 0, means: 'no such instance (any more)' },
  { code: 'InvalidNetworkInterfaceId.NotFound', retry: 'gone', afterMs: 0, means: 'no such ENI (any more)' },
  {
    code: 'UnsupportedOperation.AttachmentNotFound',
    retry: 'gone',
    afterMs: 0,
    means: 'the ENI is not attached to that instance',
  },
  { code: 'UnauthorizedOperation.AttachmentNotFound', retry: 'gone', afterMs: 0, means: 'the same' },

  {
    code: 'AuthFailure.SignatureExpire',
    retry: 'never',
    afterMs: 0,
    means: "this machine's clock is off by more than five minutes",
  },
  {
    code: 'AuthFailure.UnauthorizedOperation',
    retry: 'never',
    afterMs: 0,
    means: 'the role may not do this; grant it',
  },
  { code: 'UnauthorizedOperation', retry: 'never', afterMs: 0, means: 'the same' },
  { code: 'UnauthorizedOperation.*', retry: 'never', afterMs: 0, means: 'the same, or the primary address was meant' },
  {
    code: 'InvalidParameterValue.Duplicate',
    actions: ['CreateGlobalRoutes', 'CreateRoutes'],
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'the very route exists already',
  },
  {
    code: 'InternalError.ResourceExistAlready',
    retry: 'resolve',
    afterMs: SOON_MS,
    means: "the same, of the cluster's route table",
  },
  {
    code: 'ResourceInUse.ResourceExistAlready',
    actions: ['CreateClusterRoute'],
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'the same, as newer parts of the API say it',
  },
  {
    code: 'InternalError.CidrConflict*',
    retry: 'never',
    afterMs: 0,
    means: "the network of Pods overlaps with the VPC's own, with another cluster's or with a route of the VPC",
  },
  {
    code: 'InternalError.CidrOutOfRouteTable',
    retry: 'never',
    afterMs: 0,
    means: "the network of Pods is outside of the cluster's route table",
  },
  {
    code: 'InvalidParameter.PortCheckFailed',
    retry: 'never',
    afterMs: 0,
    means: 'another listener of the load balancer has the port',
  },
  {
    code: 'InvalidParameter.ClientTokenLimitExceeded',
    retry: 'never',
    afterMs: 0,
    means: 'the creation with this ClientToken has failed; the next one needs another token',
  },
  {
    code: 'OperationDenied',
    actions: ['DeleteLoadBalancer'],
    retry: 'never',
    afterMs: 0,
    means: 'the load balancer is protected from deletion',
  },
  {
    code: 'FailedOperation.TargetNumCheckRisk',
    retry: 'never',
    afterMs: 0,
    means: 'the load balancer to delete has many targets; deregister them first',
  },
  {
    code: 'FailedOperation.TrafficCheckRisk',
    retry: 'never',
    afterMs: 0,
    means: 'the load balancer to delete had traffic within five minutes',
  },
  {
    code: 'FailedOperation.FrequencyCheckRisk',
    retry: 'never',
    afterMs: 0,
    means: 'many load balancers were deleted within five minutes; wait as long',
  },
  {
    code: 'InvalidParameterValue.Duplicate',
    actions: ['BatchRegisterTargets'],
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'a target is registered already',
  },
  {
    code: 'InvalidParameterValue.Duplicate',
    actions: ['CreateRule'],
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'a rule of the domain and path exists already',
  },
  {
    code: 'InvalidParameter.RewriteAlreadyExist',
    actions: ['ManualRewrite'],
    retry: 'resolve',
    afterMs: SOON_MS,
    means: 'the rule is the source of a redirect, or the target of one, already',
  },
  {
    code: 'FailedOperation.DeleteResourceFailed',
    retry: 'never',
    afterMs: 0,
    means: 'something uses the certificate to delete',
  },
  {
    code: 'FailedOperation.CertificateInvalid',
    retry: 'never',
    afterMs: 0,
    means: 'the certificate to upload is not a valid chain',
  },
  {
    code: 'FailedOperation.CertificateMismatch',
    retry: 'never',
    afterMs: 0,
    means: 'the certificate to upload and its key do not belong together',
  },
  {
    code: 'BAD_REQUEST',
    retry: 'never',
    afterMs: 0,
    means: 'not sent: the API would refuse it, or do more than was asked for',
  },
  {
    code: 'UnsupportedOperation.Ecmp',
    retry: 'never',
    afterMs: 0,
    means: 'a route to the network by another instance exists',
  },
  {
    code: 'InvalidParameterValue.VpcCidrConflict',
    retry: 'never',
    afterMs: 0,
    means: "the network of Pods overlaps with the VPC's own",
  },
  {
    code: 'UnsupportedOperation.ConflictWithDockerRoute',
    retry: 'never',
    afterMs: 0,
    means: 'the network of Pods overlaps with that of another cluster of the VPC',
  },
  {
    code: 'ResourceInUse',
    actions: ['DeleteSecurityGroup'],
    retry: 'never',
    afterMs: 0,
    means: 'something is in the security group to delete',
  },
  {
    code: 'ResourceInUse',
    retry: 'never',
    afterMs: 0,
    means: 'the wanted address is taken, or the ENI to delete is bound',
  },
  { code: 'ResourceInUse.*', retry: 'never', afterMs: 0, means: 'the same' },
];

/** The rule for a code that is not in the table. */
const UNKNOWN_CODE: ErrorRule = { code: '*', retry: 'never', afterMs: 0, means: 'not in the table' };

/** Finds the rule for a code that `action` answered with, with a message. */
export function findErrorRule(code: string, action: string, text: string): ErrorRule {
  const fitting = ERROR_TABLE.filter(
    (rule) => matches(rule.code, code) && (rule.actions?.includes(action) ?? true) && text.includes(rule.text ?? ''),
  );
  return fitting.sort((a, b) => weight(b) - weight(a))[0] ?? UNKNOWN_CODE;
}

function matches(pattern: string, code: string): boolean {
  return pattern.endsWith('*') ? code.startsWith(pattern.slice(0, -1)) : pattern === code;
}

/**
 * Orders rules: one with a text before one without, an exact code before a pattern, a long one before a short one, one
 * with APIs before one without.
 */
function weight(rule: ErrorRule): number {
  const text = rule.text === undefined ? 0 : 10_000;
  const exact = rule.code.endsWith('*') ? 0 : 1_000;
  return text + exact + rule.code.length * 2 + (rule.actions === undefined ? 0 : 1);
}
