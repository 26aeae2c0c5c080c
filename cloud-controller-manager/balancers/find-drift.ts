import type { ListenerSettings } from '../../cloud/listeners.ts';
import { renderRules } from './compare-rules.ts';
import { hasSetting } from './compare-settings.ts';
import type { DesiredListener, DesiredLoadBalancer } from './desired-load-balancer.ts';
import { desiredListenersOf, desiredPlacesOf } from './desired-places.ts';
import type { DesiredTargets } from './desired-targets.ts';
import { withSourceGroup } from './diff-security-groups.ts';
import { ATTRIBUTES, type Drift, driftsByPlace } from './drift.ts';
import { findRuleDrift, type RuleContent, restoreRules, rulesIn } from './find-rule-drift.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { respectRuleDrift } from './respect-rule-drift.ts';
import { type ListenerKey, listenerKeyOf, placeIdOf, placesOf, ruleListenerKeyOf } from './target-place.ts';

/** A load balancer as it was when it was as desired: what differs later was changed by another client. */
export type Baseline = {
  readonly loadBalancerId: string;
  readonly desired: DesiredLoadBalancer;
  /** Keys of listeners of both layers. */
  readonly listeners: ReadonlySet<string>;
  /** What only listeners of layer 7 have; undefined: not known, or there are none. */
  readonly rules: RuleContent | undefined;
  /** Weights by listener or rule, and target: `TCP/80 10.0.0.1:30080`; undefined: not known. */
  readonly weights: ReadonlyMap<string, number> | undefined;
};

/** Returns the baseline of a load balancer that is as desired, but for drifts that are left as they are. */
export function baselineOf(
  desired: DesiredLoadBalancer,
  observed: ObservedLoadBalancer,
  left: readonly Drift[],
): Baseline {
  const { listeners, weights } = contentOf(observed, desired);
  const rules = desired.ruleListeners === undefined ? undefined : restoreRules(rulesIn(observed, desired), left);
  for (const { field, of, was } of left) {
    if (field === 'listener' && was !== undefined) listeners.add(of);
    if (field === 'listener' && was === undefined) listeners.delete(of);
    if (field === 'target' && was === undefined) weights.delete(of);
    else if (field === 'target' || field === 'weight') weights.set(of, Number(was));
  }
  return { loadBalancerId: observed.balancer.loadBalancerId, desired, listeners, rules, weights };
}

/** Returns the baseline of a load balancer of which a former process said that it is as desired. */
export function baselineOnRecord(loadBalancerId: string, desired: DesiredLoadBalancer): Baseline {
  const listeners = desiredListenersOf(desired);
  return { loadBalancerId, desired, listeners, rules: undefined, weights: undefined };
}

/** Finds what another client changed since the baseline, of what this program keeps. Of another load balancer: nothing. */
export function findDrift(
  { loadBalancerId, desired, listeners, rules, weights }: Baseline,
  observed: ObservedLoadBalancer,
): readonly Drift[] {
  if (observed.balancer.loadBalancerId !== loadBalancerId) return [];
  const now = contentOf(observed, desired);
  const drifts: Drift[] = [];
  // A mark does not have the id of the group that was made for source ranges.
  const before = withSourceGroup(desired, observed);
  for (const field of observed.isOwn ? ATTRIBUTES : []) {
    const [was, is] = [before[field], observed.balancer[field]];
    if (was !== undefined && is !== undefined && String(was) !== String(is))
      drifts.push({ field, of: '', was: String(was), is: String(is) });
  }
  const [was, is] = [desired.sourceGroup?.rules, observed.sourceGroup?.rules];
  if (was !== undefined && is !== undefined && renderRules(was) !== renderRules(is))
    drifts.push({ field: 'sourceRanges', of: '', was: renderRules(was), is: renderRules(is) });
  for (const of of listeners) if (!now.listeners.has(of)) drifts.push({ field: 'listener', of, was: 'there' });
  for (const of of now.listeners) if (!listeners.has(of)) drifts.push({ field: 'listener', of, is: 'there' });
  for (const listener of desired.listeners) {
    const of = keyOf(listener);
    const present = observed.listeners.find((one) => one.name === desired.listenerName && listenerKeyOf(one) === of);
    if (present === undefined || listener.keepsSettings === true) continue;
    for (const [field, was] of Object.entries(listener.settings) as [keyof ListenerSettings, unknown][]) {
      const is: unknown = present[field];
      if (!hasSetting(was, is)) drifts.push({ field, of, was: JSON.stringify(was), is: JSON.stringify(is) ?? 'none' });
    }
  }
  drifts.push(...findNameDrift(observed));
  if (desired.ruleListeners !== undefined) drifts.push(...findRuleDrift(desired, rules, observed));
  if (weights === undefined) return drifts;
  // Targets of a listener that was removed or added are no drifts of their own.
  const kept = new Set<string>(
    desiredPlacesOf(desired).flatMap(({ place, targets }) => (targets === undefined ? [] : [place])),
  );
  const before7 = rules?.rules ?? new Set<string>();
  const now7 = rulesIn(observed, desired).rules;
  const hasStayed = (place: string): boolean =>
    kept.has(place) && ((listeners.has(place) && now.listeners.has(place)) || (before7.has(place) && now7.has(place)));
  const driftsOfTargets = findTargetDrift(weights, now.weights);
  return [...drifts, ...driftsOfTargets.filter(({ of }) => hasStayed(of.slice(0, of.lastIndexOf(' '))))];
}

/** Finds the listeners of the owner that another client renamed: no baseline is needed for that. */
export function findNameDrift({ listeners }: Pick<ObservedLoadBalancer, 'listeners'>): readonly Drift[] {
  return listeners.flatMap(({ protocol, port, name, calledAs }): readonly Drift[] =>
    calledAs === undefined ? [] : [{ field: 'name', of: `${protocol}/${port}`, was: name, is: calledAs }],
  );
}

/** Returns what is desired, with drifts left as they are where the Service asks for the same as before. */
export function respectDrift(
  desired: DesiredLoadBalancer,
  before: DesiredLoadBalancer,
  drifts: readonly Drift[],
): DesiredLoadBalancer {
  const attributes = ATTRIBUTES.filter(
    (name) => String(desired[name]) === String(before[name]) && drifts.some(({ field }) => field === name),
  );
  const kept = Object.fromEntries(Object.entries(desired).filter(([name]) => !attributes.some((one) => one === name)));
  const leavesRanges = drifts.some(({ field }) => field === 'sourceRanges');
  const driftsOf = driftsByPlace(drifts);
  const beforeByKey = new Map(before.listeners.map((listener) => [keyOf(listener), listener]));
  const listeners = desired.listeners.flatMap((listener): readonly DesiredListener[] => {
    const key = keyOf(listener);
    const former = beforeByKey.get(key);
    const its = driftsOf(key);
    if (former === undefined || its.length === 0) return [listener];
    if (its.some(({ field, is }) => field === 'listener' && is === undefined)) return [];
    return [
      { ...listener, settings: respectSettings(listener, former, its), ...respectTargets(key, listener, former, its) },
    ];
  });
  const added = drifts.flatMap(({ field, of, was }): readonly DesiredListener[] => {
    if (field !== 'listener' || was !== undefined || listeners.some((one) => keyOf(one) === of)) return [];
    const [protocol = '', port = ''] = of.split('/');
    if (protocol !== 'TCP' && protocol !== 'UDP') return [];
    return [{ protocol, port: Number(port), settings: {} }];
  });
  return {
    ...(kept as DesiredLoadBalancer),
    ...(drifts.some(({ field }) => field === 'name') ? { keepsNames: true } : {}),
    ...(leavesRanges ? respectRanges(desired, before) : {}),
    listeners: [...listeners, ...added],
    ...respectRuleDrift(desired, before, drifts, respectTargets),
  };
}

function respectRanges(
  { sourceGroup }: DesiredLoadBalancer,
  { sourceGroup: before }: DesiredLoadBalancer,
): Pick<DesiredLoadBalancer, 'sourceGroup'> {
  if (sourceGroup?.rules === undefined || before?.rules === undefined) return {};
  if (renderRules(sourceGroup.rules) !== renderRules(before.rules)) return {};
  return { sourceGroup: { spec: sourceGroup.spec } };
}

type Content = { readonly listeners: Set<string>; readonly weights: Map<string, number> };

function contentOf({ listeners, targets }: ObservedLoadBalancer, { listenerName }: DesiredLoadBalancer): Content {
  const ours = listeners.filter(({ name }) => name === listenerName);
  const keys = ours.flatMap((one) => listenerKeyOf(one) ?? ruleListenerKeyOf(one) ?? []);
  const places = placesOf(listeners, listenerName);
  const weights = targets.flatMap((target) => {
    const place = places.get(placeIdOf(target));
    return place === undefined ? [] : [[`${place} ${target.ip}:${target.port}`, target.weight] as const];
  });
  return { listeners: new Set<string>(keys), weights: new Map(weights) };
}

function findTargetDrift(before: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): readonly Drift[] {
  const changed = [...before].flatMap(([of, was]): readonly Drift[] => {
    const is = now.get(of);
    if (is === was) return [];
    return [
      is === undefined
        ? { field: 'target', of, was: String(was) }
        : { field: 'weight', of, was: String(was), is: String(is) },
    ];
  });
  const added = [...now].flatMap(([of, is]): readonly Drift[] =>
    before.has(of) ? [] : [{ field: 'target', of, is: String(is) }],
  );
  return [...changed, ...added];
}

function respectSettings(
  { settings }: DesiredListener,
  { settings: before }: DesiredListener,
  drifts: readonly Drift[],
): ListenerSettings {
  const isLeft = (name: string, value: unknown): boolean =>
    drifts.some(({ field }) => field === name) && hasSetting(value, Reflect.get(before, name));
  return Object.fromEntries(Object.entries(settings).filter(([name, value]) => !isLeft(name, value)));
}

function respectTargets(
  place: string,
  listener: DesiredTargets,
  { targets: before = [] }: DesiredTargets,
  drifts: readonly Drift[],
): Pick<DesiredTargets, 'targets'> {
  if (listener.targets === undefined) return {};
  const formerWeights = new Map(before.map(({ ip, port, weight }) => [`${place} ${ip}:${port}`, weight]));
  const byTarget = new Map(drifts.map((drift) => [drift.of, drift]));
  const targets = listener.targets.flatMap((target) => {
    const of = `${place} ${target.ip}:${target.port}`;
    const drift = byTarget.get(of);
    if (drift === undefined || formerWeights.get(of) !== target.weight) return [target];
    if (drift.field === 'weight') return [{ ...target, weight: Number(drift.is) }];
    return drift.field === 'target' && drift.is === undefined ? [] : [target];
  });
  const present = new Set(targets.map(({ ip, port }) => `${place} ${ip}:${port}`));
  const added = drifts.flatMap(({ field, of, was, is }) => {
    if (field !== 'target' || was !== undefined || present.has(of)) return [];
    const [ip = '', port = ''] = of.slice(of.lastIndexOf(' ') + 1).split(':');
    return [{ ip, port: Number(port), weight: Number(is) }];
  });
  return { targets: [...targets, ...added] };
}

function keyOf({ protocol, port }: Pick<DesiredListener, 'protocol' | 'port'>): ListenerKey {
  return `${protocol}/${port}`;
}
