import type { CallContext } from '../../cloud/cloud.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type BalancerOwner, OWNER_NAMES, ownerOf } from './balancer-owner.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { blocking, type Notice } from './notice.ts';

/**
 * Refuses security groups that an owner names and that were made for the source ranges of another: they follow that one, and
 * cannot be deleted with it while they are in use.
 * @returns undefined: not known yet. @throws CloudError
 */
export async function refuseForeignGroups(
  { cloud, config: { clusterId } }: Pick<ControllerDeps, 'cloud' | 'config'>,
  { kind, uid }: Pick<BalancerOwner, 'kind' | 'uid'>,
  { securityGroupIds: named = [] }: Pick<DesiredLoadBalancer, 'securityGroupIds'>,
  context: CallContext,
): Promise<readonly Notice[] | undefined> {
  if (named.length === 0) return [];
  const { groups, isConsistent } = await cloud.groups.find({ key: CLUSTER_TAG, value: clusterId }, context);
  if (!isConsistent) return undefined;
  const own = ownerOf(clusterId, uid, kind);
  const { refused, securityGroups } = OWNER_NAMES[kind];
  return groups
    .filter(({ securityGroupId, tags }) => named.includes(securityGroupId) && (tags[OWNER_TAG] ?? own) !== own)
    .map(({ securityGroupId: id }) => {
      const why = `the security group ${id} of the annotation ${securityGroups} was made for the source ranges of another Service`;
      return blocking(refused, `${why}; name one that was made for this object`);
    });
}
