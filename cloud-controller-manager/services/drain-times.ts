import type { Target } from '../../cloud/targets.ts';
import type { Clock } from '../../runtime/clock.ts';

/** How long a target with weight 0 stays registered, so that its connections can end. */
const DRAIN_MS = 60_000;

/** Since when targets have weight 0. A new process counts anew. */
export class DrainTimes {
  readonly #clock: Clock;
  readonly #sinceMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes the targets of a load balancer as they are now. */
  note(targets: readonly Target[]): void {
    for (const target of targets) {
      const key = keyOf(target);
      if (target.weight > 0) this.#sinceMs.delete(key);
      else if (!this.#sinceMs.has(key)) this.#sinceMs.set(key, this.#clock.monotonicMs());
    }
  }

  /** Tells whether a target had its time since it got weight 0. */
  isDrained(target: Target): boolean {
    return this.#remainingMs(target) === 0;
  }

  /** Returns how long the next of these targets still has; infinite when none waits. Those that had their time are forgotten. */
  nextMs(targets: readonly Target[]): number {
    const waiting = targets.map((target) => this.#remainingMs(target)).filter((ms) => ms > 0);
    return Math.min(Number.POSITIVE_INFINITY, ...waiting);
  }

  /** Forgets targets that are deregistered. */
  forget(targets: readonly Target[]): void {
    for (const target of targets) this.#sinceMs.delete(keyOf(target));
  }

  #remainingMs(target: Target): number {
    const since = this.#sinceMs.get(keyOf(target));
    return since === undefined ? Number.POSITIVE_INFINITY : Math.max(0, since + DRAIN_MS - this.#clock.monotonicMs());
  }
}

function keyOf({ listenerId, ip, port }: Target): string {
  return `${listenerId} ${ip}:${port}`;
}
