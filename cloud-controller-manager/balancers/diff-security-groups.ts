import type { IngressRule } from '../../cloud/cloud.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { renderRules } from './compare-rules.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { LoadBalancerStep } from './load-balancer-step.ts';

/** The security groups that were made for a Service. */
export type ObservedGroups = {
  /** The one for its source ranges. Absent: there is none, or it was not looked for. */
  readonly sourceGroup?: {
    readonly securityGroupId: string;
    readonly version: string;
    readonly rules: readonly IngressRule[];
  };
  /** Others that were made for it, as when an answer was lost. */
  readonly surplusGroupIds?: readonly string[];
};

type BalancerGroups = { readonly balancer: Pick<LoadBalancer, 'securityGroupIds'> };

/** Plans what sets the policies of the group: what they have to admit is admitted before a listener is there. */
export function policySteps(
  { sourceGroup: wanted }: DesiredLoadBalancer,
  { sourceGroup }: ObservedGroups,
): readonly LoadBalancerStep[] {
  if (wanted?.rules === undefined || sourceGroup === undefined) return [];
  if (renderRules(wanted.rules) === renderRules(sourceGroup.rules)) return [];
  const { securityGroupId, version } = sourceGroup;
  return [{ kind: 'replacePolicies', securityGroupId, rules: wanted.rules, version }];
}

/** Returns the security groups that a load balancer is to have; undefined: those that it has. */
export function wantedGroups(
  { securityGroupIds, sourceGroup: wanted }: DesiredLoadBalancer,
  { balancer, sourceGroup, surplusGroupIds = [] }: ObservedGroups & BalancerGroups,
): readonly string[] | undefined {
  if (securityGroupIds !== undefined || wanted !== undefined) return securityGroupIds;
  const made = [sourceGroup?.securityGroupId, ...surplusGroupIds];
  const others = balancer.securityGroupIds.filter((id) => !made.includes(id));
  return others.length === balancer.securityGroupIds.length ? undefined : others;
}

/** Plans what deletes groups, after nothing has them any more. */
export function groupDeletions(
  { sourceGroup: wanted }: DesiredLoadBalancer,
  { sourceGroup, surplusGroupIds = [] }: ObservedGroups,
): readonly LoadBalancerStep[] {
  const unwanted = wanted === undefined && sourceGroup !== undefined ? [sourceGroup.securityGroupId] : [];
  return [...unwanted, ...surplusGroupIds].map((securityGroupId) => ({ kind: 'deleteSecurityGroup', securityGroupId }));
}

/** Names the security group that was made for a Service as the only one of its load balancer. */
export function withSourceGroup(
  desired: DesiredLoadBalancer,
  observed: ObservedGroups | undefined,
): DesiredLoadBalancer {
  const { sourceGroup } = observed ?? {};
  if (desired.sourceGroup === undefined || sourceGroup === undefined) return desired;
  return { ...desired, securityGroupIds: [sourceGroup.securityGroupId] };
}
