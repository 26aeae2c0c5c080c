import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { DesiredTargets } from './desired-targets.ts';
import { ruleKeyOf, type TargetPlace } from './target-place.ts';

/** What has targets of a desired load balancer, with them. */
type DesiredPlace = DesiredTargets & {
  readonly place: TargetPlace;
  /** Whether it is not made unless its domain has a certificate already. */
  readonly needsCertificate?: true;
};

/** Lists what has targets of a desired load balancer: its listeners of layer 4, and its rules. */
export function desiredPlacesOf({
  listeners,
  ruleListeners = [],
}: Pick<DesiredLoadBalancer, 'listeners' | 'ruleListeners'>): readonly DesiredPlace[] {
  const ofListeners = listeners.map((one): DesiredPlace => ({ place: `${one.protocol}/${one.port}`, ...one }));
  const ofRules = ruleListeners.flatMap(({ protocol, port, rules }) =>
    rules.map((rule): DesiredPlace => {
      const needs = rule.certificate !== undefined && rule.certificate.kind !== 'existing';
      const place = ruleKeyOf(`${protocol}/${port}`, rule);
      return { place, ...rule, ...(needs ? { needsCertificate: true } : {}) };
    }),
  );
  return [...ofListeners, ...ofRules];
}

/** Lists the keys of the listeners of both layers of a desired load balancer: `TCP/80`, `HTTP/80`. */
export function desiredListenersOf({
  listeners,
  ruleListeners = [],
}: Pick<DesiredLoadBalancer, 'listeners' | 'ruleListeners'>): ReadonlySet<string> {
  return new Set([...listeners, ...ruleListeners].map(({ protocol, port }) => `${protocol}/${port}`));
}

/** Returns a desired load balancer with the targets of each listener and rule changed. */
export function mapTargets(
  desired: DesiredLoadBalancer,
  change: (targets: NonNullable<DesiredTargets['targets']>) => NonNullable<DesiredTargets['targets']>,
): DesiredLoadBalancer {
  const changed = <T extends DesiredTargets>(one: T): T =>
    one.targets === undefined ? one : { ...one, targets: change(one.targets) };
  const { listeners, ruleListeners } = desired;
  return {
    ...desired,
    listeners: listeners.map(changed),
    ...(ruleListeners === undefined
      ? {}
      : { ruleListeners: ruleListeners.map((one) => ({ ...one, rules: one.rules.map(changed) })) }),
  };
}

/** The targets that an address is to be at a place: one for each port. */
type PlacedTargets = Pick<DesiredPlace, 'place' | 'needsCertificate'> & {
  readonly its: readonly { readonly ip: string; readonly port: number }[];
};

/** By plan: a plan may have tens of thousands of targets, and each Pod that waits asks for its own. */
const PLACES = new WeakMap<DesiredLoadBalancer, ReadonlyMap<string, readonly PlacedTargets[]>>();

/** Returns where addresses are to be targets with a weight. */
export function placesOfAddresses(desired: DesiredLoadBalancer, ips: readonly string[]): readonly PlacedTargets[] {
  const places = PLACES.get(desired) ?? placesByIp(desired);
  PLACES.set(desired, places);
  return ips.flatMap((ip) => places.get(ip) ?? []);
}

function placesByIp(desired: DesiredLoadBalancer): ReadonlyMap<string, readonly PlacedTargets[]> {
  const places = new Map<string, PlacedTargets[]>();
  for (const { place, targets = [], needsCertificate } of desiredPlacesOf(desired)) {
    const serving = targets.filter(({ weight }) => weight !== 'asIs' && weight > 0);
    for (const [ip, its] of Map.groupBy(serving, (target) => target.ip)) {
      const known = places.get(ip) ?? [];
      known.push({ place, its, ...(needsCertificate === undefined ? {} : { needsCertificate }) });
      places.set(ip, known);
    }
  }
  return places;
}
