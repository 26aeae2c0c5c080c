import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Listener } from '../../cloud/listeners.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { Target, TargetPort } from '../../cloud/targets.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { claimListeners, type ListenerClaim } from './claim-listeners.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';

/** Who has the load balancer that is looked for, and where it was last. */
type BalancerSearch = ListenerClaim & {
  readonly owner: string;
  /** From the mark, or the one that an annotation names; undefined: it is found by its tag. */
  readonly loadBalancerId: string | undefined;
  /** Whether security groups of the owner are looked for: two calls. */
  readonly looksForGroups?: boolean;
};

/** What the cloud has. `pending`: it is not known yet, or being made; ask again. */
type BalancerView =
  | { readonly kind: 'found'; readonly observed: ObservedLoadBalancer }
  | { readonly kind: 'absent' }
  | { readonly kind: 'pending'; readonly loadBalancerId?: string };

/**
 * Reads the load balancer of an owner, with its listeners and targets. What is absent was looked for by id and by tag, in
 * complete answers. @throws CloudError
 */
export async function observeLoadBalancer(
  { cloud }: Pick<ControllerDeps, 'cloud'>,
  { owner, loadBalancerId, looksForGroups = false, ...claim }: BalancerSearch,
  context: CallContext,
): Promise<BalancerView> {
  const byId = loadBalancerId === undefined ? [] : await cloud.loadBalancers.describe([loadBalancerId], context);
  let balancer: LoadBalancer | undefined = byId[0];
  if (balancer === undefined) {
    const sweep = await cloud.loadBalancers.find({ tag: { key: OWNER_TAG, value: owner } }, context);
    if (!sweep.isConsistent) return { kind: 'pending' };
    [balancer] = sweep.loadBalancers.toSorted((one, other) => one.createdAtMs - other.createdAtMs);
  }
  if (balancer === undefined) return { kind: 'absent' };
  if (!balancer.isNormal) return { kind: 'pending', loadBalancerId: balancer.loadBalancerId };
  const id = balancer.loadBalancerId;
  const isOwn = balancer.tags[OWNER_TAG] === owner;
  const listed = await cloud.listeners.list(id, context);
  const oursOf = (some: readonly Listener[]): readonly string[] =>
    some.flatMap(({ name, listenerId }) => (name === claim.listenerName ? [listenerId] : []));
  const own = oursOf(claimListeners({ listeners: listed, isOwn }, [], claim));
  // One with the name of another owner is read for that owner.
  const mayBeOurs = ({ name, listenerId }: Listener): boolean =>
    !own.includes(listenerId) && (isOwn || !claim.isOfOther(name));
  const others = listed.filter(mayBeOurs).map(({ listenerId }) => listenerId);
  const { all, unreadIds } = await readTargets(cloud.targets, { loadBalancerId: id, own, others }, context);
  const listeners = claimListeners({ listeners: listed, isOwn }, all, claim);
  const ours = new Set(oursOf(listeners));
  const redirects =
    ours.size === 0 || !isRedirected(listeners) ? {} : { rewrites: await cloud.rewrites.list(id, context) };
  const groups = looksForGroups ? await observeGroups(cloud, owner, balancer, context) : {};
  if (groups === undefined) return { kind: 'pending' };
  const targets = all.filter(({ listenerId }) => ours.has(listenerId));
  const ofOthers = {
    ...(targets.length === all.length ? {} : { otherTargets: all.filter((one) => !ours.has(one.listenerId)) }),
    ...(unreadIds.length === 0 ? {} : { unreadIds }),
  };
  return { kind: 'found', observed: { balancer, isOwn, listeners, targets, ...ofOthers, ...redirects, ...groups } };
}

/** Reports whether a rule is redirected, also one of others: that may lead to a rule of the owner. */
function isRedirected(listeners: readonly Listener[]): boolean {
  return listeners.some(
    ({ rules = [], unread }) => unread !== undefined || rules.some(({ rewriteTo }) => rewriteTo !== undefined),
  );
}

/** Reads the security groups that were made for an owner: the one that its load balancer has, or else the oldest. */
async function observeGroups(
  { groups }: ControllerDeps['cloud'],
  owner: string,
  { securityGroupIds }: LoadBalancer,
  context: CallContext,
): Promise<Pick<ObservedLoadBalancer, 'sourceGroup' | 'surplusGroupIds'> | undefined> {
  const sweep = await groups.find({ key: OWNER_TAG, value: owner }, context);
  if (!sweep.isConsistent) return undefined;
  const ids = sweep.groups
    .toSorted((one, other) => one.createdAtMs - other.createdAtMs)
    .map(({ securityGroupId }) => securityGroupId);
  const securityGroupId = ids.find((id) => securityGroupIds.includes(id)) ?? ids[0];
  if (securityGroupId === undefined) return {};
  try {
    const { version, rules } = await groups.policies(securityGroupId, context);
    const surplusGroupIds = ids.filter((id) => id !== securityGroupId);
    return { sourceGroup: { securityGroupId, version, rules }, surplusGroupIds };
  } catch (error) {
    // It is listed for a while after its end.
    if (isCloudError(error, 'gone')) return undefined;
    throw error;
  }
}

/** Listeners of a load balancer, by their ids. */
type ReadListeners = {
  readonly loadBalancerId: string;
  /** Those that are the owner's for sure. */
  readonly own: readonly string[];
  /** Those that may be the owner's, or another client's. */
  readonly others: readonly string[];
};

/** Most listeners that are read one by one. */
const MAX_ALONE = 10;

/**
 * Reads the targets of listeners. One of another client that is deleted meanwhile, or whose targets cannot be decoded, fails
 * nothing: it is in `unreadIds`. @throws CloudError, also when a listener of the owner cannot be read
 */
async function readTargets(
  targets: Pick<TargetPort, 'list'>,
  { loadBalancerId, own, others }: ReadListeners,
  context: CallContext,
): Promise<{ readonly all: readonly Target[]; readonly unreadIds: readonly string[] }> {
  const list = async (ids: readonly string[]): Promise<readonly Target[]> =>
    ids.length === 0 ? [] : await targets.list(loadBalancerId, ids, context);
  try {
    return { all: await list([...own, ...others]), unreadIds: [] };
  } catch (error) {
    if (others.length === 0 || !isOfListener(error)) throw error;
  }
  const all = [...(await list(own))];
  const unreadIds = others.slice(MAX_ALONE);
  for (const id of others.slice(0, MAX_ALONE))
    try {
      all.push(...(await list([id])));
    } catch (error) {
      if (!isOfListener(error)) throw error;
      unreadIds.push(id);
    }
  return { all, unreadIds };
}

/** Whether an error may be that of one listener alone. */
function isOfListener(error: unknown): boolean {
  return isCloudError(error, 'gone', 'never') || (isCloudError(error) && error.code === 'BAD_ANSWER');
}
