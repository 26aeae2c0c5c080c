import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { HealthState, Target, TargetHealth } from '../../cloud/targets.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

/** So long it counts that a target was found healthy. */
const AGE_MS = 600_000;
/** The cloud checks new targets some times before they are healthy. */
const USUAL_MS = 60_000;

/** What is held, on one load balancer. */
type Held = {
  readonly loadBalancerId: string;
  /** All targets of the listeners of the Service. */
  readonly targets: readonly Target[];
  /** Those of them that go, and keep their weight until others of their listener serve. */
  readonly held: readonly Target[];
};

/** Which targets are known to serve: what takes their place may be registered, and not be reached. */
export class ServingTargets {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>;
  readonly #untilMs = new Map<string, number>();
  /** By load balancer: since when targets are held. */
  readonly #heldSinceMs = new Map<string, number>();

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /** Tells whether a target was found healthy. */
  serves(target: Target): boolean {
    return (this.#untilMs.get(keyOf(target)) ?? Number.NEGATIVE_INFINITY) > this.#deps.clock.monotonicMs();
  }

  /** Notes that nothing of a load balancer is held. */
  release(loadBalancerId: string): void {
    this.#heldSinceMs.delete(loadBalancerId);
  }

  /**
   * Asks for the health of targets. Where none of those that are held is healthy either, the others count as serving: there
   * is nothing to lose.
   * @returns whether something may be drained now; and if not, whether that takes longer than usual. @throws CloudError
   */
  async look({ loadBalancerId, targets, held }: Held, context: CallContext): Promise<'drain' | 'wait' | 'stuck'> {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    for (const [key, untilMs] of this.#untilMs) if (untilMs <= nowMs) this.#untilMs.delete(key);
    const answer = await this.#healthOf(loadBalancerId, context);
    const stateOf = new Map(answer.map((one): [string, HealthState] => [keyOf(one), one.state]));
    const isHealthy = (target: Target): boolean => ['healthy', 'unchecked'].includes(stateOf.get(keyOf(target)) ?? '');
    let mayDrain = false;
    for (const [listenerId, its] of Map.groupBy(held, (target) => target.listenerId)) {
      const going = new Set(its.map(keyOf));
      const others = targets.filter((one) => one.listenerId === listenerId && one.weight > 0 && !going.has(keyOf(one)));
      const serving = its.some(isHealthy) ? others.filter(isHealthy) : others;
      for (const target of serving) this.#untilMs.set(keyOf(target), nowMs + AGE_MS);
      mayDrain ||= serving.length > 0;
    }
    if (mayDrain) return 'drain';
    const sinceMs = this.#heldSinceMs.get(loadBalancerId) ?? nowMs;
    this.#heldSinceMs.set(loadBalancerId, sinceMs);
    return nowMs - sinceMs < USUAL_MS ? 'wait' : 'stuck';
  }

  /** Returns nothing when the cloud does not tell this key: what is not known is not waited for. */
  async #healthOf(loadBalancerId: string, context: CallContext): Promise<readonly TargetHealth[]> {
    try {
      return await this.#deps.cloud.targets.health([loadBalancerId], context);
    } catch (error) {
      if (!isCloudError(error, 'never', 'credentials')) throw error;
      this.#deps.log.warn('the health of targets is not known; they count as healthy', { loadBalancerId, error });
      return [];
    }
  }
}

function keyOf({ listenerId, ip, port }: Pick<Target, 'listenerId' | 'ip' | 'port'>): string {
  return `${listenerId} ${ip}:${port}`;
}
