import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { HealthState, Target, TargetHealth } from '../../cloud/targets.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { placeIdOf, targetIdOf } from './target-place.ts';

/** So long it counts that a target was found healthy, as long as it is registered. */
const AGE_MS = 600_000;
/** The cloud checks new targets some times before they are healthy. */
const USUAL_MS = 60_000;

/** What is held of one Service. */
type Held = {
  readonly service: string;
  readonly loadBalancerId: string;
  /** All targets of the listeners of the Service. */
  readonly targets: readonly Target[];
  /** Those of them that go, and keep their weight until others of their listener serve. */
  readonly held: readonly Target[];
  /** Those of which one has to serve for each rule, before what leads to it is changed. */
  readonly awaited?: readonly Target[];
};

/** Which targets are known to serve: what takes their place may be registered, and not be reached. */
export class ServingTargets {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>;
  /** By Service, and by target. */
  readonly #untilMs = new Map<string, Map<string, number>>();
  /** By Service: since when targets are held. */
  readonly #heldSinceMs = new Map<string, number>();

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /** Notes the targets of a Service as they are now. One that is registered again, or gets a weight again, is not known to serve. */
  note(service: string, targets: readonly Target[]): void {
    const known = this.#untilMs.get(service);
    if (known === undefined) return;
    const nowMs = this.#deps.clock.monotonicMs();
    const present = new Set(targets.flatMap((target) => (target.weight > 0 ? [targetIdOf(target)] : [])));
    for (const [key, untilMs] of known) if (untilMs <= nowMs || !present.has(key)) known.delete(key);
    if (known.size === 0) this.#untilMs.delete(service);
  }

  /** Reports whether a target was found healthy. */
  serves(service: string, target: Target): boolean {
    const untilMs = this.#untilMs.get(service)?.get(targetIdOf(target)) ?? Number.NEGATIVE_INFINITY;
    return untilMs > this.#deps.clock.monotonicMs();
  }

  /** Reports whether targets of a Service, or what waits for them, are held for longer than usual. */
  hasWaited(service: string): boolean {
    const sinceMs = this.#heldSinceMs.get(service);
    return sinceMs !== undefined && this.#deps.clock.monotonicMs() - sinceMs >= USUAL_MS;
  }

  /** Notes that nothing of a Service is held. */
  release(service: string): void {
    this.#heldSinceMs.delete(service);
  }

  /** Forgets a Service. */
  forget(service: string): void {
    this.#heldSinceMs.delete(service);
    this.#untilMs.delete(service);
  }

  /**
   * Asks for the health of targets. Where none of those that are held is healthy either, the others count as serving: there
   * is nothing to lose.
   * @returns whether something may be drained now; and if not, whether that takes longer than usual. @throws CloudError
   */
  async look(
    { service, loadBalancerId, targets, held, awaited = [] }: Held,
    context: CallContext,
  ): Promise<'drain' | 'wait' | 'stuck'> {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    const answer = await this.#healthOf(loadBalancerId, context);
    const stateOf = new Map(answer.map((one): [string, HealthState] => [targetIdOf(one), one.state]));
    const isHealthy = (target: Target): boolean =>
      ['healthy', 'unchecked'].includes(stateOf.get(targetIdOf(target)) ?? '');
    const known = this.#untilMs.get(service) ?? new Map<string, number>();
    let mayDrain = false;
    for (const [place, its] of Map.groupBy(held, placeIdOf)) {
      const going = new Set(its.map(targetIdOf));
      const others = targets.filter((one) => placeIdOf(one) === place && one.weight > 0 && !going.has(targetIdOf(one)));
      const serving = its.some(isHealthy) ? others.filter(isHealthy) : others;
      for (const target of serving) known.set(targetIdOf(target), nowMs + AGE_MS);
      mayDrain ||= serving.length > 0;
    }
    // Where the cloud does not tell the health, it is not waited for.
    for (const target of answer.length === 0 ? awaited : awaited.filter(isHealthy)) {
      known.set(targetIdOf(target), nowMs + AGE_MS);
      mayDrain = true;
    }
    if (known.size > 0) this.#untilMs.set(service, known);
    if (mayDrain) return 'drain';
    const sinceMs = this.#heldSinceMs.get(service) ?? nowMs;
    this.#heldSinceMs.set(service, sinceMs);
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
