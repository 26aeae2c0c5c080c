import { TARGETS_PER_CHANGE, type Target } from '../../cloud/targets.ts';
import { OWNER_NAMES } from './balancer-owner.ts';
import { mayDelete } from './claim-listeners.ts';
import { compareIdentity, describeForeign, otherVpcOf } from './compare-identity.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { diffListeners, type ListenerDiff, listenerDeletions } from './diff-listeners.ts';
import { diffRules } from './diff-rules.ts';
import { groupDeletions, policySteps, wantedGroups } from './diff-security-groups.ts';
import { keepingChanges } from './kept-balancer.ts';
import type { LoadBalancerStep, StepTarget } from './load-balancer-step.ts';
import { blocking, type Notice } from './notice.ts';
import type { ObservedListener, ObservedLoadBalancer } from './observed-load-balancer.ts';
import { rewriteDeletions } from './plan-rewrites.ts';
import { placeIdOf, placesOf, ruleKeyOf } from './target-place.ts';
import { batches, type KnownOfTargets } from './target-steps.ts';

/** What removes something of a load balancer, or the load balancer. */
type ReleaseStep = Extract<
  LoadBalancerStep,
  { readonly kind: 'deregister' | 'deleteListeners' | 'deleteRewrites' | 'delete' | 'setSecurityGroups' | 'modify' }
>;

type Contents = Parameters<typeof diffRules>[1];

/** What makes the load balancer as it is desired. The steps are taken in this order. */
type LoadBalancerDiff = {
  readonly steps: readonly LoadBalancerStep[];
  readonly notices: readonly Notice[];
  /** Targets that are not asked for any more, and keep their weight until others of their listener or rule serve. */
  readonly held?: readonly Target[];
  /** Targets of rules of which one has to serve before a redirect, or a rule that goes, is changed. */
  readonly awaited?: readonly Target[];
};

const OF_TARGETS: readonly LoadBalancerStep['kind'][] = ['register', 'setWeights', 'deregister'];

/**
 * Compares the load balancer of an owner with the desired one. What is done changes nothing any more: a second comparison
 * finds no step. At no step a listener loses its last target with a weight while another one is to come.
 * @param isDrained whether a target with weight 0 had time to end its connections; those that had not stay for now
 * @param serves whether a registered target is known to serve; default: each one does, from the moment in which it is registered
 * @param isHeldBack whether a target is not to be registered now, though it is asked for; default: none is
 * @param hasWaited whether rules that go have waited long enough for others to serve
 */
export function diffLoadBalancer(
  desired: DesiredLoadBalancer,
  observed: ObservedLoadBalancer | undefined,
  isDrained: (target: Target) => boolean,
  serves?: (target: Target) => boolean,
  isHeldBack?: (target: StepTarget) => boolean,
  hasWaited = false,
): LoadBalancerDiff {
  const { source, ruleListeners } = desired;
  const { refused, object, existing } = OWNER_NAMES[ruleListeners === undefined ? 'service' : 'ingress'];
  if (observed === undefined) {
    if (source.kind === 'existing') {
      const message = `the load balancer ${source.loadBalancerId} does not exist in this region; name another one in the annotation ${existing}`;
      return { steps: [], notices: [blocking(refused, message)] };
    }
    return { steps: [{ kind: 'create', spec: source.spec }, ...stepsOfNew(desired)], notices: [] };
  }
  const differences = compareIdentity(source, observed);
  const known = {
    ...{ isDrained, hasWaited },
    ...(serves === undefined ? {} : { serves }),
    ...(isHeldBack === undefined ? {} : { isHeldBack }),
  };
  if (differences.length === 0)
    return desired.followsOnly === true
      ? diffFollowed(desired, observed, known)
      : diffContents(desired, observed, known);
  const otherVpc = otherVpcOf(source, observed);
  if (otherVpc !== undefined) {
    const message = `${differences.join(', ')}, as the cluster is in it: nothing was changed. If the cluster is in ${otherVpc}, set --vpc-id=${otherVpc}; else delete the ${object} and create it again`;
    return { steps: [], notices: [blocking('ImmutableChangeRefused', message)] };
  }
  if (!desired.allowsAddressChange) {
    const foreign = source.kind === 'own' && !observed.isOwn ? describeForeign(source, observed.balancer) : undefined;
    const change = `ake the change back, or annotate the ${object} with tke.cloud.tencent.com/allow-address-change=true`;
    const cure = foreign === undefined ? `T${change}` : `${foreign}. If the ${object} was changed instead, t${change}`;
    const message = `${differences.join(', ')}: that is another load balancer, and another address; nothing was changed. ${cure}`;
    return { steps: [], notices: [blocking('ImmutableChangeRefused', message)] };
  }
  // An existing one that is to be used has to be read first.
  const created: readonly LoadBalancerStep[] =
    source.kind === 'own' ? [{ kind: 'create', spec: source.spec }, ...stepsOfNew(desired)] : [];
  return { steps: [...releaseSteps(desired.listenerName, observed), ...created], notices: [] };
}

/**
 * Plans what removes everything of an owner: its listeners, and its own load balancer. The cloud refuses to delete one
 * with many targets.
 */
export function releaseSteps(listenerName: string, observed: ObservedLoadBalancer): readonly ReleaseStep[] {
  const deleted = contentReleases(listenerName, observed);
  return observed.isOwn ? [...deleted, { kind: 'delete' }] : deleted;
}

/**
 * Plans what removes everything of a Service but its own load balancer, and marks that as kept. Without its group, a load
 * balancer with source ranges would keep that in use.
 */
export function retainSteps(listenerName: string, observed: ObservedLoadBalancer): readonly ReleaseStep[] {
  const { balancer, isOwn, sourceGroup } = observed;
  const deleted = contentReleases(listenerName, observed);
  if (!isOwn) return deleted;
  const others = balancer.securityGroupIds.filter((id) => id !== sourceGroup?.securityGroupId);
  const unbound: readonly ReleaseStep[] =
    others.length === balancer.securityGroupIds.length ? [] : [{ kind: 'setSecurityGroups', securityGroupIds: others }];
  const changes = keepingChanges(balancer);
  return [...deleted, ...unbound, ...(changes === undefined ? [] : [{ kind: 'modify' as const, changes }])];
}

function contentReleases(listenerName: string, observed: ObservedLoadBalancer): readonly ReleaseStep[] {
  const { listeners, rewrites, isOwn } = observed;
  const ours = listeners.filter(({ name }) => name === listenerName);
  const ids = ours.filter((one) => mayDelete(one, isOwn)).map(({ listenerId }) => listenerId);
  const redirects = (rewrites ?? []).filter(({ sourceListenerId }) => ids.includes(sourceListenerId));
  const left = ours.filter(({ listenerId }) => !ids.includes(listenerId));
  return [...rewriteDeletions(redirects), ...listenerDeletions(ids), ...emptyingSteps(left, listenerName, observed)];
}

/** Plans what takes its targets from a listener that stays. */
function emptyingSteps(
  left: readonly ObservedListener[],
  listenerName: string,
  { targets }: Pick<ObservedLoadBalancer, 'targets'>,
): readonly Extract<ReleaseStep, { readonly kind: 'deregister' }>[] {
  const places = placesOf(left, listenerName);
  const its = targets.flatMap(({ ip, port, instanceId, ...ref }): readonly StepTarget[] => {
    const place = places.get(placeIdOf(ref));
    return place === undefined ? [] : [{ place, ip, port, ...(instanceId === undefined ? {} : { instanceId }) }];
  });
  return batches(its, TARGETS_PER_CHANGE).map((batch) => ({ kind: 'deregister', targets: batch }));
}

/** Plans what gives listeners that another client renamed the name of their owner again. */
function nameSteps(
  { listenerName, keepsNames = false }: Pick<DesiredLoadBalancer, 'listenerName' | 'keepsNames'>,
  { listeners }: Pick<ObservedLoadBalancer, 'listeners'>,
): readonly LoadBalancerStep[] {
  const renamed = listeners.filter(({ name, calledAs }) => name === listenerName && calledAs !== undefined);
  if (keepsNames) return [];
  return renamed.map(({ listenerId }) => ({ kind: 'modifyListener', listenerId, changes: { name: listenerName } }));
}

function stepsOfNew(desired: DesiredLoadBalancer): readonly LoadBalancerStep[] {
  const { securityGroupIds = [], sourceGroup } = desired;
  const nothing = { balancer: { loadBalancerId: '' }, isOwn: true, listeners: [], targets: [] };
  return [
    ...(sourceGroup === undefined ? [] : [{ kind: 'createSecurityGroup' as const, spec: sourceGroup.spec }]),
    ...(securityGroupIds.length === 0 ? [] : [{ kind: 'setSecurityGroups' as const, securityGroupIds }]),
    ...diffOfListeners(desired, nothing, { isDrained: () => true }).steps,
  ];
}

function diffOfListeners(
  desired: DesiredLoadBalancer,
  observed: Contents,
  known: KnownOfTargets,
): ListenerDiff & Pick<LoadBalancerDiff, 'awaited'> {
  const { ruleListeners } = desired;
  return ruleListeners === undefined
    ? diffListeners(desired, observed, known)
    : diffRules({ ...desired, ruleListeners }, observed, known);
}

function diffFollowed(...[desired, observed, known]: Parameters<typeof diffContents>): LoadBalancerDiff {
  const places = new Set(placesOf(observed.listeners, desired.listenerName).values());
  const listeners = desired.listeners.filter(({ protocol, port }) => places.has(`${protocol}/${port}`));
  const ruleListeners = desired.ruleListeners?.map((listener) => {
    const { protocol, port } = listener;
    return { ...listener, rules: listener.rules.filter((rule) => places.has(ruleKeyOf(`${protocol}/${port}`, rule))) };
  });
  const followed = { ...desired, listeners, ...(ruleListeners === undefined ? {} : { ruleListeners }) };
  const { awaited: _, ...diff } = diffContents(followed, observed, known);
  return { ...diff, steps: diff.steps.filter(({ kind }) => OF_TARGETS.includes(kind)) };
}

function diffContents(
  desired: DesiredLoadBalancer,
  observed: ObservedLoadBalancer,
  known: KnownOfTargets,
): LoadBalancerDiff {
  const { sourceGroup } = desired;
  // A listener must not be made before the group that closes it.
  if (sourceGroup !== undefined && observed.sourceGroup === undefined)
    return { steps: [{ kind: 'createSecurityGroup', spec: sourceGroup.spec }], notices: [] };
  const { steps: ofListeners, notices, held, awaited } = diffOfListeners(desired, observed, known);
  const steps = [
    ...nameSteps(desired, observed),
    ...policySteps(desired, observed),
    ...attributeSteps(desired, observed),
    ...ofListeners,
    ...groupDeletions(desired, observed),
  ];
  return {
    steps,
    notices,
    ...(held.length === 0 ? {} : { held }),
    ...(awaited === undefined ? {} : { awaited }),
  };
}

/** One that exists for others too keeps its attributes. */
function attributeSteps(desired: DesiredLoadBalancer, observed: ObservedLoadBalancer): readonly LoadBalancerStep[] {
  const { balancer, isOwn } = observed;
  if (!isOwn) return [];
  const { passesToTarget, isDeleteProtected, bandwidthMbps } = desired;
  const changes = {
    ...(passesToTarget === undefined || passesToTarget === balancer.passesToTarget ? {} : { passesToTarget }),
    ...(isDeleteProtected === undefined || isDeleteProtected === balancer.isDeleteProtected
      ? {}
      : { isDeleteProtected }),
    // The cloud does not report it of each one.
    ...(bandwidthMbps === undefined || bandwidthMbps === (balancer.bandwidthMbps ?? bandwidthMbps)
      ? {}
      : { bandwidthMbps }),
  };
  const securityGroupIds = wantedGroups(desired, observed);
  const groupsDiffer = securityGroupIds !== undefined && securityGroupIds.join() !== balancer.securityGroupIds.join();
  return [
    ...(Object.keys(changes).length === 0 ? [] : [{ kind: 'modify' as const, changes }]),
    ...(groupsDiffer ? [{ kind: 'setSecurityGroups' as const, securityGroupIds }] : []),
  ];
}
