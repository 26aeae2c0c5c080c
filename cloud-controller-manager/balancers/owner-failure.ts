import { type CloudError, isCloudError } from '../../cloud/cloud-error.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { OWNER_NAMES, type OwnerKind } from './balancer-owner.ts';
import { StepError } from './run-step.ts';

/** What is being done for an owner. */
type OwnerWork = 'serve' | 'release';

/** Returns what an event says of a fault of the cloud or of the API server: what was refused, and what to do about it. */
export function describeFailure(error: unknown, work: OwnerWork, kind: OwnerKind): string {
  const message = messageOf(error);
  const cure = isCloudError(error) ? cureOf(error, work, kind) : undefined;
  return cure === undefined ? message : `${message}; ${cure}`;
}

/** Reports whether a fault is not over by itself: a person has to do something. */
export function needsPerson(error: unknown): boolean {
  if (isKubeError(error, 'FORBIDDEN', 'INVALID') || error instanceof StepError) return true;
  return isCloudError(error, 'never', 'quota', 'credentials') || (isCloudError(error) && namesNothing(error));
}

/** Reports whether the cloud refused something of the security group for source ranges, which is not over by itself. */
export function isOfGroup(error: unknown): error is CloudError {
  return isCloudError(error, 'never', 'quota', 'credentials') && error.action.includes('SecurityGroup');
}

/** Reports whether a new load balancer was to be in something that does not exist. */
function namesNothing({ retry, action }: CloudError): boolean {
  return retry === 'gone' && action === 'CreateLoadBalancer';
}

/** Returns undefined where the fault is over by itself. */
function cureOf(error: CloudError, work: OwnerWork, kind: OwnerKind): string | undefined {
  const { retry, scope } = error;
  const { object, mode, existing, securityGroups } = OWNER_NAMES[kind];
  if (namesNothing(error)) return 'name what exists in the VPC of the cluster';
  // Without a key the error says itself what to do.
  if (error.code === 'CREDENTIALS') return undefined;
  if (retry === 'credentials')
    return 'the cloud does not accept the key of tke-cloud-controller-manager: look at --credentials, its Secret, and the clock of the machine';
  if (error.action === 'DeleteSecurityGroup' && retry === 'never')
    return 'take the security group off what else has it, and out of the rules of others';
  if (retry === 'never' && work === 'release')
    return `take the protection off in the console, or annotate the ${object} with ${mode}=skip to leave the load balancer`;
  if (retry === 'never') return `correct what the ${object} asks for; if the key lacks the right, grant it`;
  if (retry !== 'quota') return undefined;
  if (scope === 'load-balancers')
    return `raise the quota of load balancers of the account, delete some, or name an existing one in the annotation ${existing}`;
  if (scope === 'listeners')
    return `raise the quota of listeners of a load balancer, or let the ${object} have fewer ports`;
  if (scope === 'targets') return 'raise the quota of targets of a listener, or let fewer Nodes or Pods be backends';
  if (scope === 'security-groups')
    return `raise the quota of security groups of the account, delete some, or name one in the annotation ${securityGroups}`;
  if (scope === 'security-group-policies')
    return 'the source ranges need a policy for each network, protocol and range of ports: name fewer and larger networks, or raise the quota of policies of a security group. The former ones stay in force';
  return 'raise the quota of the account';
}
