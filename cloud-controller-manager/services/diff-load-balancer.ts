import {
  LISTENERS_PER_DELETION,
  type Listener,
  type ListenerSettings,
  type ListenerSpec,
  PORTS_PER_CREATION,
} from '../../cloud/listeners.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { TARGETS_PER_CHANGE, type Target } from '../../cloud/targets.ts';
import { compareIdentity } from './compare-identity.ts';
import type { DesiredListener, DesiredLoadBalancer } from './desired-load-balancer.ts';
import { groupDeletions, type ObservedGroups, policySteps, wantedGroups } from './diff-security-groups.ts';
import { diffTargets } from './diff-targets.ts';
import type { ListenerKey, LoadBalancerStep, StepTarget } from './load-balancer-step.ts';
import { blocking, type Notice, remark } from './notice.ts';

/** The load balancer of a Service as the cloud has it. */
export type ObservedLoadBalancer = ObservedGroups & {
  readonly balancer: LoadBalancer;
  /** Whether it was made for the Service. Otherwise it exists for others too, and is never changed or deleted itself. */
  readonly isOwn: boolean;
  /** All listeners, those of others too. */
  readonly listeners: readonly Listener[];
  /** The targets of all listeners that bear the Service's name. */
  readonly targets: readonly Target[];
};

/** What removes something of a load balancer, or the load balancer. */
type ReleaseStep = Extract<LoadBalancerStep, { readonly kind: 'deleteListeners' | 'delete' }>;

/** What makes the load balancer as it is desired. The steps are taken in this order. */
type LoadBalancerDiff = {
  readonly steps: readonly LoadBalancerStep[];
  readonly notices: readonly Notice[];
  /** Targets that are not asked for any more, and keep their weight until others of their listener serve. */
  readonly held?: readonly Target[];
};

const OF_TARGETS: readonly LoadBalancerStep['kind'][] = ['register', 'setWeights', 'deregister'];

/**
 * Compares the load balancer of a Service with the desired one. What is done changes nothing any more: a second comparison
 * finds no step. At no step a listener loses its last target with a weight while another one is to come.
 * @param isDrained whether a target with weight 0 had time to end its connections; those that had not stay for now
 * @param serves whether a registered target is known to serve; default: each one does, from the moment in which it is registered
 * @param isHeldBack whether a target is not to be registered now, though it is asked for; default: none is
 */
export function diffLoadBalancer(
  desired: DesiredLoadBalancer,
  observed: ObservedLoadBalancer | undefined,
  isDrained: (target: Target) => boolean,
  serves?: (target: Target) => boolean,
  isHeldBack?: (target: StepTarget) => boolean,
): LoadBalancerDiff {
  const { source } = desired;
  if (observed === undefined) {
    if (source.kind === 'existing') {
      const message = `the load balancer ${source.loadBalancerId} does not exist in this region; name another one in the annotation service.kubernetes.io/tke-existed-lbid`;
      return { steps: [], notices: [blocking('ServiceRefused', message)] };
    }
    return { steps: [{ kind: 'create', spec: source.spec }, ...stepsOfNew(desired)], notices: [] };
  }
  const differences = compareIdentity(source, observed);
  const known = {
    isDrained,
    ...(serves === undefined ? {} : { serves }),
    ...(isHeldBack === undefined ? {} : { isHeldBack }),
  };
  if (differences.length === 0)
    return desired.followsOnly === true
      ? diffFollowed(desired, observed, known)
      : diffContents(desired, observed, known);
  if (!desired.allowsAddressChange) {
    const message = `${differences.join(', ')}: that is another load balancer, and another address; nothing was changed. Take the change back, or annotate the Service with tke.cloud.tencent.com/allow-address-change=true`;
    return { steps: [], notices: [blocking('ImmutableChangeRefused', message)] };
  }
  // An existing one that is to be used has to be read first.
  const created: readonly LoadBalancerStep[] =
    source.kind === 'own' ? [{ kind: 'create', spec: source.spec }, ...stepsOfNew(desired)] : [];
  return { steps: [...releaseSteps(desired.listenerName, observed), ...created], notices: [] };
}

/**
 * Plans what removes everything of a Service: its listeners, and its own load balancer. The cloud refuses to delete one
 * with many targets.
 */
export function releaseSteps(listenerName: string, observed: ObservedLoadBalancer): readonly ReleaseStep[] {
  const ours = observed.listeners.filter(({ name }) => name === listenerName);
  const deleted = deletions(ours.map(({ listenerId }) => listenerId));
  return observed.isOwn ? [...deleted, { kind: 'delete' }] : deleted;
}

/** Returns the key of a listener of layer 4; undefined for any other. */
export function listenerKeyOf({ protocol, port, endPort }: Pick<Listener, 'protocol' | 'port' | 'endPort'>) {
  const isOne = (protocol === 'TCP' || protocol === 'UDP') && (endPort === undefined || endPort === port);
  return isOne ? keyOf({ protocol, port }) : undefined;
}

function stepsOfNew(desired: DesiredLoadBalancer): readonly LoadBalancerStep[] {
  const { listeners, securityGroupIds = [], sourceGroup } = desired;
  const targets = listeners.flatMap(
    (listener) => diffTargets(keyOf(listener), targetFacts(listener, [], { isDrained: () => true })).register,
  );
  return [
    ...(sourceGroup === undefined ? [] : [{ kind: 'createSecurityGroup' as const, spec: sourceGroup.spec }]),
    ...(securityGroupIds.length === 0 ? [] : [{ kind: 'setSecurityGroups' as const, securityGroupIds }]),
    ...creations(listeners, desired.listenerName),
    ...batches(targets, TARGETS_PER_CHANGE).map((batch) => ({ kind: 'register' as const, targets: batch })),
  ];
}

function diffFollowed(...[desired, observed, known]: Parameters<typeof diffContents>): LoadBalancerDiff {
  const ours = observed.listeners.filter(({ name }) => name === desired.listenerName).map(listenerKeyOf);
  const listeners = desired.listeners.filter((listener) => ours.includes(keyOf(listener)));
  const diff = diffContents({ ...desired, listeners }, observed, known);
  return { ...diff, steps: diff.steps.filter(({ kind }) => OF_TARGETS.includes(kind)) };
}

function diffContents(
  desired: DesiredLoadBalancer,
  observed: ObservedLoadBalancer,
  known: Pick<Parameters<typeof diffTargets>[1], 'isDrained' | 'serves' | 'isHeldBack'>,
): LoadBalancerDiff {
  const { sourceGroup } = desired;
  // A listener must not be made before the group that closes it.
  if (sourceGroup !== undefined && observed.sourceGroup === undefined)
    return { steps: [{ kind: 'createSecurityGroup', spec: sourceGroup.spec }], notices: [] };
  const ours = observed.listeners.filter(({ name }) => name === desired.listenerName);
  const others = observed.listeners.filter(({ name }) => name !== desired.listenerName);
  const clashes = desired.listeners.flatMap((listener) => {
    const other = others.find((one) => coversPort(one, listener));
    return other === undefined ? [] : [{ listener, other }];
  });
  const wanted = desired.listeners.filter((listener) => clashes.every((clash) => clash.listener !== listener));
  const byKey = new Map(ours.map((listener) => [listenerKeyOf(listener), listener]));
  const kept = new Set(wanted.flatMap((listener) => byKey.get(keyOf(listener)) ?? []));
  const missing = wanted.filter((listener) => !byKey.has(keyOf(listener)));
  const changed = wanted.flatMap((listener): readonly LoadBalancerStep[] => {
    const present = byKey.get(keyOf(listener));
    const changes = present === undefined ? undefined : changesOf(listener.settings, present);
    return present === undefined || changes === undefined
      ? []
      : [{ kind: 'modifyListener', listenerId: present.listenerId, changes }];
  });
  const targetsOf = Map.groupBy(observed.targets, ({ listenerId }) => listenerId);
  const diffs = wanted.map((listener) => {
    const present = byKey.get(keyOf(listener));
    const its = present === undefined ? [] : (targetsOf.get(present.listenerId) ?? []);
    return diffTargets(keyOf(listener), targetFacts(listener, its, known));
  });
  const surplus = ours.filter((listener) => !kept.has(listener)).map(({ listenerId }) => listenerId);
  const steps: readonly LoadBalancerStep[] = [
    ...policySteps(desired, observed),
    ...attributeSteps(desired, observed),
    ...weightSteps(diffs.flatMap(({ drainFirst }) => drainFirst)),
    ...changed,
    ...creations(missing, desired.listenerName),
    ...deregistrations(diffs.flatMap(({ deregisterFirst }) => deregisterFirst)),
    ...weightSteps(diffs.flatMap(({ raise }) => raise)),
    ...targetBatches(
      'register',
      diffs.flatMap(({ register }) => register),
    ),
    ...weightSteps(diffs.flatMap(({ drainLast }) => drainLast)),
    ...deregistrations(diffs.flatMap(({ deregister }) => deregister)),
    ...deletions(surplus),
    ...groupDeletions(desired, observed),
  ];
  const notices = clashes.map(({ listener: { protocol, port }, other }) => {
    const message = `port ${port} of ${protocol}: the listener ${other.listenerId} (${other.name}) of ${observed.balancer.loadBalancerId} has it and is not of this Service; it stays as it is. Remove it, or use another port`;
    return remark('ListenerClash', message);
  });
  const held = diffs.flatMap(({ held: its }) => its);
  return { steps, notices, ...(held.length === 0 ? {} : { held }) };
}

/** One that exists for others too keeps its attributes. */
function attributeSteps(desired: DesiredLoadBalancer, observed: ObservedLoadBalancer): readonly LoadBalancerStep[] {
  const { balancer, isOwn } = observed;
  if (!isOwn) return [];
  const { passesToTarget } = desired;
  const securityGroupIds = wantedGroups(desired, observed);
  const groupsDiffer = securityGroupIds !== undefined && securityGroupIds.join() !== balancer.securityGroupIds.join();
  return [
    ...(passesToTarget === undefined || passesToTarget === balancer.passesToTarget
      ? []
      : [{ kind: 'modify' as const, changes: { passesToTarget } }]),
    ...(groupsDiffer ? [{ kind: 'setSecurityGroups' as const, securityGroupIds }] : []),
  ];
}

/** Tells whether a listener has a port that is wanted. Ports of what speaks over TCP, or over UDP, are taken by each other. */
export function coversPort(
  { protocol, port, endPort = port }: Listener,
  wanted: Pick<DesiredListener, 'protocol' | 'port'>,
): boolean {
  const isOverUdp = protocol === 'UDP' || protocol === 'QUIC';
  return isOverUdp === (wanted.protocol === 'UDP') && port <= wanted.port && wanted.port <= endPort;
}

/** Returns the settings that differ, with a health check as a whole; undefined: none. Absent ones are not compared. */
function changesOf(wanted: ListenerSettings, present: ListenerSettings): ListenerSettings | undefined {
  const changes = Object.entries(wanted).filter(([key, value]) => !hasSetting(value, Reflect.get(present, key)));
  return changes.length === 0 ? undefined : Object.fromEntries(changes);
}

/** Tells whether a setting of a listener is as wanted; what is absent in the wanted one is not compared. */
export function hasSetting(wanted: unknown, present: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return wanted === present;
  if (typeof present !== 'object' || present === null) return false;
  // A check that is off has no other settings.
  if ('isOn' in wanted && wanted.isOn === false) return 'isOn' in present && present.isOn === false;
  return Object.entries(wanted).every(
    ([key, value]) => value === undefined || hasSetting(value, Reflect.get(present, key)),
  );
}

/** One call creates listeners of one protocol with the same settings. */
function creations(listeners: readonly DesiredListener[], name: string): readonly LoadBalancerStep[] {
  const groups = Map.groupBy(listeners, ({ protocol, settings }) => JSON.stringify([protocol, settings]));
  return [...groups.values()].flatMap((group) =>
    batches(group, PORTS_PER_CREATION).flatMap((batch): readonly LoadBalancerStep[] => {
      const [first] = batch;
      if (first === undefined) return [];
      const { protocol, settings } = first;
      const spec: ListenerSpec = { protocol, settings, ports: batch.map(({ port }) => ({ port, name })) };
      return [{ kind: 'createListeners', spec }];
    }),
  );
}

function deletions(listenerIds: readonly string[]): readonly ReleaseStep[] {
  return batches(listenerIds, LISTENERS_PER_DELETION).map((ids) => ({ kind: 'deleteListeners', listenerIds: ids }));
}

type Weighted = Extract<LoadBalancerStep, { readonly kind: 'setWeights' }>['targets'];

function weightSteps(targets: Weighted): readonly LoadBalancerStep[] {
  return targetBatches('setWeights', targets);
}

function targetBatches(kind: 'register' | 'setWeights', targets: Weighted): readonly LoadBalancerStep[] {
  return batches(targets, TARGETS_PER_CHANGE).map((batch) => ({ kind, targets: batch }));
}

function deregistrations(targets: readonly StepTarget[]): readonly LoadBalancerStep[] {
  return batches(targets, TARGETS_PER_CHANGE).map((batch) => ({ kind: 'deregister', targets: batch }));
}

function targetFacts(
  { targets: desired, keptIps, keepsNodes, maxTargets }: DesiredListener,
  observed: readonly Target[],
  known: Pick<Parameters<typeof diffTargets>[1], 'isDrained' | 'serves' | 'isHeldBack'>,
): Parameters<typeof diffTargets>[1] {
  return {
    desired,
    observed,
    ...known,
    ...(keptIps === undefined ? {} : { keptIps }),
    ...(keepsNodes === undefined ? {} : { keepsNodes }),
    ...(maxTargets === undefined ? {} : { maxTargets }),
  };
}

function batches<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}

function keyOf({ protocol, port }: Pick<DesiredListener, 'protocol' | 'port'>): ListenerKey {
  return `${protocol}/${port}`;
}
