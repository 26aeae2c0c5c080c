import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Listener } from '../../cloud/listeners.ts';
import type { LoadBalancer, LoadBalancerPort } from '../../cloud/load-balancers.ts';
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
  /** Further ones where its listeners may be. */
  readonly otherIds?: readonly (string | undefined)[];
  /** Value of `OWNER_TAG` of those where its listeners may be, too: each of them is read. */
  readonly poolOwner?: string | undefined;
  /** Whether security groups of the owner are looked for: two calls. */
  readonly looksForGroups?: boolean;
};

/** What the cloud has. `pending`: it is not known yet, or being made; ask again. */
type BalancerView =
  | { readonly kind: 'found'; readonly observed: ObservedLoadBalancer }
  | { readonly kind: 'absent' }
  | { readonly kind: 'pending'; readonly loadBalancerId?: string };

/**
 * Reads the load balancer of an owner, with its listeners and targets. A record is an annotation, which names what its writer
 * likes: it counts where the load balancer has the owner's tag or a listener of its name, and otherwise when none has. What is
 * absent was looked for by id and by tag, in complete answers. @throws CloudError
 */
export async function observeLoadBalancer(
  { cloud }: Pick<ControllerDeps, 'cloud'>,
  { owner, loadBalancerId, otherIds = [], poolOwner, looksForGroups = false, ...claim }: BalancerSearch,
  context: CallContext,
): Promise<BalancerView> {
  const { listenerName, knownAt } = claim;
  const ids = new Set([knownAt, loadBalancerId, ...otherIds].flatMap((one) => one ?? []));
  const place = await findPlace(cloud, { owner, listenerName, ids, poolOwner }, context);
  if (!('listed' in place)) return place;
  const { balancer, listed } = place;
  const id = balancer.loadBalancerId;
  const isOwn = balancer.tags[OWNER_TAG] === owner;
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

/** A load balancer, with all of its listeners. */
type Place = { readonly balancer: LoadBalancer; readonly listed: readonly Listener[] };

/** Finds the load balancer that has the owner's tag, or a listener of its name; without one, the first of those that are named. */
async function findPlace(
  { loadBalancers, listeners }: ControllerDeps['cloud'],
  {
    owner,
    listenerName,
    ids,
    poolOwner,
  }: Pick<BalancerSearch, 'owner' | 'listenerName' | 'poolOwner'> & { readonly ids: ReadonlySet<string> },
  context: CallContext,
): Promise<Place | Exclude<BalancerView, { readonly kind: 'found' }>> {
  let first: Place | undefined;
  const read = async (balancer: LoadBalancer): Promise<Place | Extract<BalancerView, { readonly kind: 'pending' }>> => {
    const { loadBalancerId, isNormal } = balancer;
    if (!isNormal) return { kind: 'pending', loadBalancerId };
    return { balancer, listed: await listeners.list(loadBalancerId, context) };
  };
  const has = ({ listed }: Place): boolean => listed.some(({ name }) => name === listenerName);
  for (const id of ids) {
    const balancer = await describeNamed(loadBalancers, id, context);
    if (balancer === undefined) continue;
    const place = await read(balancer);
    if (!('listed' in place) || balancer.tags[OWNER_TAG] === owner || has(place)) return place;
    first ??= place;
  }
  for (const tag of [owner, poolOwner]) {
    if (tag === undefined) continue;
    const sweep = await loadBalancers.find({ tag: { key: OWNER_TAG, value: tag } }, context);
    if (!sweep.isConsistent) return { kind: 'pending' };
    for (const balancer of sweep.loadBalancers.toSorted((one, other) => one.createdAtMs - other.createdAtMs)) {
      const place = await read(balancer);
      if (!('listed' in place) || tag === owner || has(place)) return place;
    }
  }
  return first ?? { kind: 'absent' };
}

/** Reads a load balancer that an annotation names; an id that the cloud refuses is that of none. @throws CloudError */
async function describeNamed(
  loadBalancers: Pick<LoadBalancerPort, 'describe'>,
  id: string,
  context: CallContext,
): Promise<LoadBalancer | undefined> {
  try {
    const [balancer] = await loadBalancers.describe([id], context);
    return balancer;
  } catch (error) {
    const isRefused = isCloudError(error, 'never') && error.code.startsWith('InvalidParameter');
    if (isRefused || isCloudError(error, 'gone')) return undefined;
    throw error;
  }
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
