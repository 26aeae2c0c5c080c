import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { desiredPlacesOf } from './desired-places.ts';
import type { TargetPlace } from './target-place.ts';

/** The targets that an address is to be at a place: one for each port. */
type PlacedTargets = {
  readonly place: TargetPlace;
  readonly its: readonly { readonly ip: string; readonly port: number }[];
  /** Whether the place is not made unless its domain has a certificate already. */
  readonly needsCertificate?: true;
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
