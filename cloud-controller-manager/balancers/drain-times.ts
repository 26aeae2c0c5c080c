import type { Target } from '../../cloud/targets.ts';
import type { Clock } from '../../runtime/clock.ts';
import { targetIdOf } from './target-place.ts';

/** How long a target with weight 0 stays registered, so that its connections can end. */
const DRAIN_MS = 60_000;

/** Since when targets have weight 0. A new process counts again. */
export class DrainTimes {
  readonly #clock: Clock;
  /** By Service, and by target: others may have targets on the same load balancer. */
  readonly #sinceMs = new Map<string, ReadonlyMap<string, number>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes the targets of a Service as they are now; those that are not among them are forgotten. */
  note(service: string, targets: readonly Target[]): void {
    const known = this.#sinceMs.get(service);
    const nowMs = this.#clock.monotonicMs();
    const draining = targets.filter(({ weight }) => weight === 0).map(targetIdOf);
    if (draining.length === 0) this.#sinceMs.delete(service);
    else this.#sinceMs.set(service, new Map(draining.map((key) => [key, known?.get(key) ?? nowMs])));
  }

  /** Forgets a Service. */
  forget(service: string): void {
    this.#sinceMs.delete(service);
  }

  /** Tells whether a target had its time since it got weight 0. */
  isDrained(service: string, target: Target): boolean {
    return this.#remainingMs(service, target) === 0;
  }

  /** Returns how long the next of these targets still has; infinite when none waits. */
  nextMs(service: string, targets: readonly Target[]): number {
    const waiting = targets.map((target) => this.#remainingMs(service, target)).filter((ms) => ms > 0);
    return Math.min(Number.POSITIVE_INFINITY, ...waiting);
  }

  #remainingMs(service: string, target: Target): number {
    const since = this.#sinceMs.get(service)?.get(targetIdOf(target));
    return since === undefined ? Number.POSITIVE_INFINITY : Math.max(0, since + DRAIN_MS - this.#clock.monotonicMs());
  }
}
