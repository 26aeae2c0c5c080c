import {
  LISTENERS_PER_DELETION,
  type Listener,
  type ListenerSettings,
  type ListenerSpec,
  PORTS_PER_CREATION,
} from '../../cloud/listeners.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { Target } from '../../cloud/targets.ts';
import { mayDelete } from './claim-listeners.ts';
import { changesOf } from './compare-settings.ts';
import type { DesiredListener, DesiredLoadBalancer } from './desired-load-balancer.ts';
import { diffTargets, type TargetDiff } from './diff-targets.ts';
import type { LoadBalancerStep, PlainStep } from './load-balancer-step.ts';
import { type Notice, remark } from './notice.ts';
import type { ObservedListener, ObservedLoadBalancer } from './observed-load-balancer.ts';
import { type ListenerKey, listenerKeyOf, placeIdOf, placesOf } from './target-place.ts';
import { batches, type KnownOfTargets, orderTargetSteps, targetFactsOf } from './target-steps.ts';

/** What makes the listeners of a load balancer as they are desired. The steps are taken in this order. */
export type ListenerDiff = {
  readonly steps: readonly LoadBalancerStep[];
  readonly notices: readonly Notice[];
  /** Targets that are not asked for any more, and keep their weight until others of their listener or rule serve. */
  readonly held: readonly Target[];
};

type Listed = Pick<ObservedLoadBalancer, 'listeners' | 'isOwn'> & {
  readonly balancer: Pick<LoadBalancer, 'loadBalancerId'>;
};

/** Compares the listeners of layer 4 of a load balancer with the desired ones. */
export function diffListeners(
  desired: Pick<DesiredLoadBalancer, 'listeners' | 'listenerName' | 'keepsNames'>,
  observed: Listed & Pick<ObservedLoadBalancer, 'targets'>,
  known: KnownOfTargets,
): ListenerDiff {
  const { listenerName } = desired;
  const ours = observed.listeners.filter(({ name }) => name === listenerName);
  const { free: wanted, notices } = divideByClash(desired.listeners, observed, listenerName, 'Service');
  const byKey = new Map(ours.map((listener) => [listenerKeyOf(listener), listener]));
  const kept = new Set(wanted.flatMap((listener) => byKey.get(keyOf(listener)) ?? []));
  const missing = wanted.filter((listener) => !byKey.has(keyOf(listener)));
  const changed = wanted.flatMap((listener): readonly LoadBalancerStep[] => {
    const present = byKey.get(keyOf(listener));
    const isKept = present === undefined || listener.keepsSettings === true;
    const changes = isKept ? undefined : changesOf<ListenerSettings>(listener.settings, present);
    return present === undefined || changes === undefined
      ? []
      : [{ kind: 'modifyListener', listenerId: present.listenerId, changes }];
  });
  const targetsOf = Map.groupBy(observed.targets, ({ listenerId }) => listenerId);
  const diffs = wanted.map((listener) => {
    const present = byKey.get(keyOf(listener));
    const its = present === undefined ? [] : (targetsOf.get(present.listenerId) ?? []);
    return diffTargets(keyOf(listener), targetFactsOf(listener, its, known));
  });
  const { deletable, left } = divideSurplus(
    ours.filter((listener) => !kept.has(listener)),
    desired,
    observed,
    known,
  );
  const targets = orderTargetSteps([...diffs, ...left]);
  const steps = [
    ...targets.before,
    ...changed,
    ...listenerCreations(missing, listenerName),
    ...targets.after,
    ...listenerDeletions(deletable.map(({ listenerId }) => listenerId)),
  ];
  return { steps, notices, held: diffs.flatMap(({ held }) => held) };
}

/**
 * Divides listeners of the owner that are not asked for: those that are deleted, and the targets of those that stay, as
 * another client renamed them on a load balancer of others.
 */
export function divideSurplus(
  surplus: readonly ObservedListener[],
  { listenerName, keepsNames = false }: Pick<DesiredLoadBalancer, 'listenerName' | 'keepsNames'>,
  { isOwn, targets }: Pick<ObservedLoadBalancer, 'isOwn' | 'targets'>,
  known: KnownOfTargets,
): { readonly deletable: readonly ObservedListener[]; readonly left: readonly TargetDiff[] } {
  // Without `keepsNames` they have the name of the owner again before they are deleted.
  const deletable = surplus.filter((one) => !keepsNames || mayDelete(one, isOwn));
  const places = placesOf(
    surplus.filter((one) => !deletable.includes(one)),
    listenerName,
  );
  const targetsOf = Map.groupBy(targets, placeIdOf);
  const left = [...places].map(([id, place]) =>
    diffTargets(place, targetFactsOf({ targets: [] }, targetsOf.get(id) ?? [], known)),
  );
  return { deletable, left };
}

/** Finds the desired listeners whose port a listener of others has: those are left out, with a notice. */
export function divideByClash<T extends { readonly protocol: string; readonly port: number }>(
  listeners: readonly T[],
  { balancer, listeners: present }: Listed,
  listenerName: string,
  owner: 'Service' | 'Ingress',
): { readonly free: readonly T[]; readonly notices: readonly Notice[] } {
  const others = present.filter(({ name }) => name !== listenerName);
  const clashes = listeners.flatMap((listener) => {
    const other = others.find((one) => coversPort(one, listener));
    return other === undefined ? [] : [{ listener, other }];
  });
  const notices = clashes.map(({ listener: { protocol, port }, other }) => {
    const message = `port ${port} of ${protocol}: the listener ${other.listenerId} (${other.name}) of ${balancer.loadBalancerId} has it and is not of this ${owner}; it stays as it is. Remove it, or use another port`;
    return remark('ListenerClash', message);
  });
  return { free: listeners.filter((listener) => clashes.every((clash) => clash.listener !== listener)), notices };
}

/** Reports whether a listener has a port that is wanted. Ports of what speaks over TCP, or over UDP, are taken by each other. */
export function coversPort(
  { protocol, port, endPort = port }: Listener,
  wanted: { readonly protocol: string; readonly port: number },
): boolean {
  const isOverUdp = protocol === 'UDP' || protocol === 'QUIC';
  return isOverUdp === (wanted.protocol === 'UDP') && port <= wanted.port && wanted.port <= endPort;
}

/** Plans the creation of listeners: one call creates those of one protocol with the same settings. */
export function listenerCreations(
  listeners: readonly (Pick<ListenerSpec, 'protocol' | 'settings'> & { readonly port: number })[],
  name: string,
): readonly LoadBalancerStep[] {
  const groups = Map.groupBy(listeners, ({ protocol, settings }) => JSON.stringify([protocol, settings]));
  return [...groups.values()].flatMap((group) =>
    batches(group, PORTS_PER_CREATION).flatMap((batch): readonly LoadBalancerStep[] => {
      const [first] = batch;
      if (first === undefined) return [];
      const { protocol, settings } = first;
      const spec = { protocol, settings, ports: batch.map(({ port }) => ({ port, name })) };
      return [{ kind: 'createListeners', spec }];
    }),
  );
}

/** Plans the deletion of listeners, with their rules and targets. */
export function listenerDeletions(
  listenerIds: readonly string[],
): readonly Extract<PlainStep, { readonly kind: 'deleteListeners' }>[] {
  return batches(listenerIds, LISTENERS_PER_DELETION).map((ids) => ({ kind: 'deleteListeners', listenerIds: ids }));
}

function keyOf({ protocol, port }: Pick<DesiredListener, 'protocol' | 'port'>): ListenerKey {
  return `${protocol}/${port}`;
}
