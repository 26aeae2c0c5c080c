import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Listener } from '../../cloud/listeners.ts';
import type { HealthState } from '../../cloud/targets.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { DesiredListener, DesiredLoadBalancer } from './desired-load-balancer.ts';
import { coversPort, listenerKeyOf } from './diff-load-balancer.ts';

/** Load balancers of one question for health. */
const BATCH = 30;
/** Health that is older than the weight of a target is that of what had its address before. Above the interval of checks. */
const CHECKED_AFTER_MS = 6_000;
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
  #health: ReadonlyMap<string, HealthState | 'missing'> = new Map();
  /** Load balancers that could not be read. */
  readonly #unreadable = new Set<string>();
  /** Targets that had weight 0 while gates were pending: since when they have another one. Monotonic milliseconds. */
  #raisedAtMs: ReadonlyMap<string, number> = new Map();

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /** Asks for the health of all targets of load balancers. One that cannot be read has no targets. */
  async refresh(loadBalancerIds: readonly string[], context: CallContext): Promise<void> {
    const health = new Map<string, HealthState | 'missing'>();
    const raisedAtMs = new Map<string, number>();
    const nowMs = this.#deps.clock.monotonicMs();
    for (let at = 0; at < loadBalancerIds.length; at += BATCH) {
      const ids = loadBalancerIds.slice(at, at + BATCH);
      const note = async (some: readonly string[]): Promise<void> => {
        for (const { listenerId, ip, port, state, weight } of await this.#deps.cloud.targets.health(some, context)) {
          const key = keyOf(listenerId, ip, port);
          const raised = weight === 0 ? Number.POSITIVE_INFINITY : this.#raisedAtMs.get(key);
          const sinceMs = raised === Number.POSITIVE_INFINITY && weight !== 0 ? nowMs : raised;
          if (sinceMs !== undefined) raisedAtMs.set(key, sinceMs);
          // It has no connections yet, or the answer may be that of what had the address before.
          if (weight === 0) health.set(key, 'missing');
          else health.set(key, isEarly(state, sinceMs, nowMs) ? 'unknown' : state);
        }
      };
      try {
        await note(ids);
        for (const id of ids) this.#unreadable.delete(id);
      } catch (error) {
        if (!isCloudError(error, 'gone', 'never', 'credentials')) throw error;
        // One of them is gone, or cannot be read, and takes the answer about the others with it.
        for (const id of ids) {
          this.#unreadable.delete(id);
          await note([id]).catch((one: unknown) => this.#ignore(one, id));
        }
      }
    }
    this.#health = health;
    this.#raisedAtMs = raisedAtMs;
  }

  /** Finds the listener of a Service on its load balancer. One that is gone or cannot be read has none. @throws CloudError */
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
    const listeners = await cloud.listeners.list(loadBalancerId, context).catch((error: unknown) => {
      this.#ignore(error, loadBalancerId);
      return [];
    });
    this.#listeners.set(loadBalancerId, { listeners, atMs: clock.monotonicMs() });
    return classify(listeners, listenerName, wanted);
  }

  /** Tells whether a load balancer could not be read, and will not be until a person changes something. */
  isUnreadable(loadBalancerId: string): boolean {
    return this.#unreadable.has(loadBalancerId);
  }

  /** The state of a target as it was last asked for. */
  stateOf(listenerId: string, ip: string, port: number): HealthState | 'missing' {
    return this.#health.get(keyOf(listenerId, ip, port)) ?? 'missing';
  }

  /** Forgets everything: no gate is pending. */
  clear(): void {
    this.#listeners.clear();
    this.#unreadable.clear();
    this.#health = new Map();
    this.#raisedAtMs = new Map();
  }

  #ignore(error: unknown, id: string): void {
    if (!isCloudError(error, 'gone', 'never', 'credentials')) throw error;
    this.#unreadable.add(id);
    this.#listeners.delete(id);
    this.#deps.log.info('a load balancer cannot be read; its targets are not known', { loadBalancer: id, error });
  }
}

function isEarly(state: HealthState, raisedAtMs: number | undefined, nowMs: number): boolean {
  return state !== 'unchecked' && raisedAtMs !== undefined && nowMs - raisedAtMs < CHECKED_AFTER_MS;
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
