import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Listener } from '../../cloud/listeners.ts';
import type { HealthState } from '../../cloud/targets.ts';
import type { ControllerDeps } from '../controller-deps.ts';
import type { DesiredListener, DesiredLoadBalancer } from './desired-load-balancer.ts';
import { coversPort, listenerKeyOf } from './diff-load-balancer.ts';

/** Load balancers of one question for health. */
const BATCH = 30;
/** A listener that is to come is looked for so often. */
const LOOK_AGAIN_MS = 5_000;

type KnownListeners = { readonly listeners: readonly Listener[]; readonly atMs: number };

/** What a listener of a Service is. `foreign`: one of others has its port; `absent`: it is not made yet. */
type FoundListener =
  | { readonly kind: 'ours'; readonly listenerId: string }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'absent' };

/** What the cloud says of the targets of load balancers, asked for while readiness gates are pending. */
export class TargetStates {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>;
  readonly #listeners = new Map<string, KnownListeners>();
  #health: ReadonlyMap<string, HealthState> = new Map();

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /** Asks for the health of all targets of load balancers. One that cannot be read has no targets. */
  async refresh(loadBalancerIds: readonly string[], context: CallContext): Promise<void> {
    const health = new Map<string, HealthState>();
    for (let at = 0; at < loadBalancerIds.length; at += BATCH) {
      const ids = loadBalancerIds.slice(at, at + BATCH);
      const note = async (some: readonly string[]): Promise<void> => {
        for (const { listenerId, ip, port, state } of await this.#deps.cloud.targets.health(some, context))
          health.set(keyOf(listenerId, ip, port), state);
      };
      try {
        await note(ids);
      } catch (error) {
        if (!isCloudError(error, 'gone')) throw error;
        // One of them is gone, and takes the answer about the others with it.
        for (const id of ids) await note([id]).catch((one: unknown) => this.#ignoreGone(one, id));
      }
    }
    this.#health = health;
  }

  /** Finds the listener of a Service on its load balancer. @throws CloudError */
  async findListener(
    loadBalancerId: string,
    { listenerName }: Pick<DesiredLoadBalancer, 'listenerName'>,
    wanted: DesiredListener,
    context: CallContext,
  ): Promise<FoundListener> {
    const found = classify(this.#listeners.get(loadBalancerId)?.listeners ?? [], listenerName, wanted);
    if (found.kind === 'ours') return found;
    const { clock, cloud } = this.#deps;
    const known = this.#listeners.get(loadBalancerId);
    if (known !== undefined && clock.monotonicMs() - known.atMs < LOOK_AGAIN_MS) return found;
    const listeners = await cloud.listeners.list(loadBalancerId, context);
    this.#listeners.set(loadBalancerId, { listeners, atMs: clock.monotonicMs() });
    return classify(listeners, listenerName, wanted);
  }

  /** The state of a target as it was last asked for. */
  stateOf(listenerId: string, ip: string, port: number): HealthState | 'missing' {
    return this.#health.get(keyOf(listenerId, ip, port)) ?? 'missing';
  }

  /** Forgets everything: no gate is pending. */
  clear(): void {
    this.#listeners.clear();
    this.#health = new Map();
  }

  #ignoreGone(error: unknown, id: string): void {
    if (!isCloudError(error, 'gone')) throw error;
    this.#listeners.delete(id);
    this.#deps.log.info('a load balancer is gone; its targets are not known', { loadBalancer: id });
  }
}

function classify(listeners: readonly Listener[], name: string, wanted: DesiredListener): FoundListener {
  const key = `${wanted.protocol}/${wanted.port}`;
  const ours = listeners.find((one) => one.name === name && listenerKeyOf(one) === key);
  if (ours !== undefined) return { kind: 'ours', listenerId: ours.listenerId };
  return listeners.some((one) => coversPort(one, wanted)) ? { kind: 'foreign' } : { kind: 'absent' };
}

function keyOf(listenerId: string, ip: string, port: number): string {
  return `${listenerId} ${ip}:${port}`;
}
