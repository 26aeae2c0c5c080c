import type { Clock } from '../../runtime/clock.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { desiredPlacesOf } from './desired-places.ts';
import type { StepTarget } from './load-balancer-step.ts';
import { type Notice, remark } from './notice.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { placeIdOf, placesOf } from './target-place.ts';

/** A target that the cloud refused to register. */
export type Refusal = {
  readonly target: StepTarget;
  /** Whether it was refused by itself; otherwise with others, of which some may be good. */
  readonly isAlone: boolean;
  /** The cloud's own words. */
  readonly reason: string;
};

type Entry = Refusal & { readonly delayMs: number; readonly triedMs: number; readonly untilMs: number };

/** Those that were refused with others are tried again in smaller groups. */
const SUSPECT_MS = 5_000;
const FIRST_MS = 60_000;
const MAX_MS = 600_000;
/** So many of a Service are tried again at once, and the others a minute later. */
const TURN = { most: 2, apartMs: 60_000 } as const;
/** Targets in a message; the others are counted. */
const SHOWN = 3;

/**
 * The targets that the cloud refused, each with a time before which it is not tried again. An entry lives as long as its
 * Service asks for the target: there are no more of them than targets.
 */
export class RefusedTargets {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** By Service, and by target: others may have targets on the same load balancer. */
  readonly #entries = new Map<string, Map<string, Entry>>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Notes refusals; each one of the same target doubles its delay. */
  note(service: string, refusals: readonly Refusal[]): void {
    if (refusals.length === 0) return;
    const entries = this.#entries.get(service) ?? new Map<string, Entry>();
    this.#entries.set(service, entries);
    const nowMs = this.#clock.monotonicMs();
    for (const refusal of refusals) {
      const key = keyOf(refusal.target);
      const before = entries.get(key);
      const isKnown = before?.isAlone === true;
      const isAlone = refusal.isAlone || isKnown;
      const delayMs = isKnown ? Math.min(MAX_MS, before.delayMs * 2) : isAlone ? FIRST_MS : SUSPECT_MS;
      entries.set(key, { ...refusal, isAlone, delayMs, triedMs: nowMs, untilMs: nowMs + delayMs });
    }
  }

  /** Forgets what is not asked for any more, or is registered. */
  retain(service: string, desired: DesiredLoadBalancer, observed: ObservedLoadBalancer): void {
    const entries = this.#entries.get(service);
    if (entries === undefined) return;
    const wanted = new Set<string>();
    for (const { place, targets = [] } of desiredPlacesOf(desired))
      for (const target of targets) if (target.weight !== 0) wanted.add(keyOf({ place, ...target }));
    const places = placesOf(observed.listeners, desired.listenerName);
    for (const target of observed.targets) {
      const place = places.get(placeIdOf(target));
      if (place !== undefined) wanted.delete(keyOf({ place, ip: target.ip, port: target.port }));
    }
    for (const key of entries.keys()) if (!wanted.has(key)) entries.delete(key);
    if (entries.size === 0) this.#entries.delete(service);
  }

  /** Reports whether a target is not to be tried now. */
  isHeld(service: string, target: StepTarget): boolean {
    return (this.#find(service, target)?.untilMs ?? Number.NEGATIVE_INFINITY) > this.#clock.monotonicMs();
  }

  /**
   * Divides targets that are to be registered. Those that were refused by themselves are tried one by one, few at a time:
   * none of them takes a new one with it.
   */
  divide<T extends StepTarget>(
    service: string,
    targets: readonly T[],
  ): { readonly together: readonly T[]; readonly alone: readonly T[] } {
    const entries = this.#entries.get(service);
    const triedMs = (target: T): number => entries?.get(keyOf(target))?.triedMs ?? 0;
    const isKnown = (target: T): boolean => entries?.get(keyOf(target))?.isAlone === true;
    const known = targets.filter(isKnown).toSorted((one, other) => triedMs(one) - triedMs(other));
    const alone = known.slice(0, TURN.most);
    const laterMs = this.#clock.monotonicMs() + TURN.apartMs;
    if (alone.length > 0)
      for (const [key, entry] of entries ?? [])
        if (entry.isAlone) entries?.set(key, { ...entry, untilMs: Math.max(entry.untilMs, laterMs) });
    return { together: targets.filter((target) => !isKnown(target)), alone };
  }

  /** The addresses of the targets of a Service that are refused. */
  ipsOf(service: string): readonly string[] {
    return [...new Set(this.#of(service).map(({ target }) => target.ip))];
  }

  /** Returns how long the next one of a Service waits to be tried again; infinite when none does. */
  nextMs(service: string): number {
    const nowMs = this.#clock.monotonicMs();
    const left = this.#of(service).map(({ untilMs }) => Math.max(0, untilMs - nowMs));
    return Math.min(Number.POSITIVE_INFINITY, ...left);
  }

  /** What the user of a Service has to know of them. */
  notices(service: string, loadBalancerId: string): readonly Notice[] {
    const refused = this.#of(service);
    const [first] = refused;
    if (first === undefined) return [];
    const names = refused.map(({ target: { place, ip, port } }) => `${ip}:${port} of ${place}`);
    const shown = names.slice(0, SHOWN).join(', ');
    const reason = first.reason.replace(/\.$/, '');
    const count = names.length === 1 ? 'a target' : `${names.length} targets`;
    const message = `the cloud refused ${count} of ${loadBalancerId}, as ${shown}: ${reason}. All others are registered. Look whether it is the address of a Pod of this VPC; it is tried again by itself`;
    return [remark('SyncLoadBalancerFailed', message)];
  }

  forget(service: string): void {
    this.#entries.delete(service);
  }

  #of(service: string): readonly Entry[] {
    return [...(this.#entries.get(service)?.values() ?? [])];
  }

  #find(service: string, target: StepTarget): Entry | undefined {
    return this.#entries.get(service)?.get(keyOf(target));
  }
}

function keyOf({ place, ip, port }: StepTarget): string {
  return `${place} ${ip}:${port}`;
}
