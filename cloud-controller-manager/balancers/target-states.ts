import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Listener } from '../../cloud/listeners.ts';
import type { HealthState, TargetRef } from '../../cloud/targets.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { coversPort } from './diff-listeners.ts';
import { placesOf, type TargetPlace, targetIdOf } from './target-place.ts';

/** Load balancers of one question for health, and the most of a namespace that a pass asks for alone. */
const BATCH = 30;
/** After which one that could not be read is asked for again. */
const UNREADABLE_MS = 60_000;
/** Health that is older than the weight of a target is that of what had its address before. Above the interval of checks. */
const CHECKED_AFTER_MS = 6_000;
/** A listener that is to come is looked for so often. */
const LOOK_AGAIN_MS = 5_000;

type KnownListeners = { readonly listeners: readonly Listener[]; readonly atMs: number };

/** What is at the place of targets. `foreign`: a listener of others has its port; `absent`: it is not made yet. */
type FoundPlace =
  | {
      readonly kind: 'found';
      readonly ref: Pick<TargetRef, 'listenerId' | 'ruleId'>;
      /** Whether it has the name of the owner: others may have renamed it, or it is theirs. */
      readonly isNamed: boolean;
    }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'absent' };

/** What the cloud says of the targets of load balancers, asked for while readiness gates are pending. */
export class TargetStates {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>;
  readonly #listeners = new Map<string, KnownListeners>();
  #health: ReadonlyMap<string, HealthState | 'missing'> = new Map();
  /** Load balancers that could not be read, and when that was; monotonic milliseconds. */
  readonly #unreadable = new Map<string, number>();
  /** Targets that had weight 0 while gates were pending: since when they have another one. Monotonic milliseconds. */
  #raisedAtMs: ReadonlyMap<string, number> = new Map();

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /**
   * Asks for the health of all targets of load balancers. One that cannot be read has no targets, and is not asked for again for
   * a minute.
   * @param loadBalancerIds by namespace: one that cannot be read takes the answer about others of its namespace alone with it
   */
  async refresh(loadBalancerIds: Iterable<ReadonlySet<string>>, context: CallContext): Promise<void> {
    const health = new Map<string, HealthState | 'missing'>();
    const raisedAtMs = new Map<string, number>();
    const nowMs = this.#deps.clock.monotonicMs();
    const note = async (some: readonly string[]): Promise<void> => {
      for (const target of await this.#deps.cloud.targets.health(some, context)) {
        const { state, weight } = target;
        const key = targetIdOf(target);
        const raised = weight === 0 ? Number.POSITIVE_INFINITY : this.#raisedAtMs.get(key);
        const sinceMs = raised === Number.POSITIVE_INFINITY && weight !== 0 ? nowMs : raised;
        if (sinceMs !== undefined) raisedAtMs.set(key, sinceMs);
        // It has no connections yet, or the answer may be that of what had the address before.
        if (weight === 0) health.set(key, 'missing');
        else health.set(key, isEarly(state, sinceMs, nowMs) ? 'unknown' : state);
      }
      for (const id of some) this.#unreadable.delete(id);
    };
    for (const all of loadBalancerIds) {
      const asked = [...all].filter(
        (id) => nowMs - (this.#unreadable.get(id) ?? Number.NEGATIVE_INFINITY) >= UNREADABLE_MS,
      );
      let left = BATCH;
      for (let at = 0; at < asked.length; at += BATCH) {
        const ids = asked.slice(at, at + BATCH);
        try {
          await note(ids);
        } catch (error) {
          if (!isCloudError(error, 'gone', 'never', 'credentials')) throw error;
          // One of them is gone, or cannot be read, and takes the answer about the others with it.
          for (const id of ids.slice(0, left)) await note([id]).catch((one: unknown) => this.#ignore(one, id));
          left = Math.max(0, left - ids.length);
        }
      }
    }
    this.#health = health;
    this.#raisedAtMs = raisedAtMs;
  }

  /** Finds the listener or rule at a place of an owner on its load balancer, whatever it is called. One that is gone or cannot be read has none. @throws CloudError */
  async findPlace(
    loadBalancerId: string,
    { listenerName }: Pick<DesiredLoadBalancer, 'listenerName'>,
    wanted: TargetPlace,
    context: CallContext,
  ): Promise<FoundPlace> {
    const found = classify(this.#listeners.get(loadBalancerId)?.listeners ?? [], listenerName, wanted);
    if (found.kind === 'found' && found.isNamed) return found;
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

  /** Reports whether a load balancer could not be read, and will not be until a person changes something. */
  isUnreadable(loadBalancerId: string): boolean {
    return this.#unreadable.has(loadBalancerId);
  }

  /** The state of a target as it was last asked for. */
  stateOf(target: Pick<TargetRef, 'listenerId' | 'ruleId' | 'ip' | 'port'>): HealthState | 'missing' {
    return this.#health.get(targetIdOf(target)) ?? 'missing';
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
    this.#unreadable.set(id, this.#deps.clock.monotonicMs());
    this.#listeners.delete(id);
    this.#deps.log.info('a load balancer cannot be read; its targets are not known', { loadBalancer: id, error });
  }
}

function isEarly(state: HealthState, raisedAtMs: number | undefined, nowMs: number): boolean {
  return state !== 'unchecked' && raisedAtMs !== undefined && nowMs - raisedAtMs < CHECKED_AFTER_MS;
}

function classify(listeners: readonly Listener[], name: string, wanted: TargetPlace): FoundPlace {
  for (const one of listeners) {
    const [id] = [...placesOf([one], one.name)].find(([, place]) => place === wanted) ?? [];
    if (id === undefined) continue;
    const [listenerId = '', ruleId = ''] = id.split(' ');
    const ref = ruleId === '' ? { listenerId } : { listenerId, ruleId };
    return { kind: 'found', ref, isNamed: one.name === name };
  }
  const others = listeners.filter((one) => one.name !== name);
  return others.some((one) => coversPort(one, portOf(wanted))) ? { kind: 'foreign' } : { kind: 'absent' };
}

function portOf(place: TargetPlace): { readonly protocol: string; readonly port: number } {
  const [protocol = '', port = ''] = (place.split(' ')[0] ?? '').split('/');
  return { protocol, port: Number(port) };
}
