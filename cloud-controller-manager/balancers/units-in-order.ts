import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Listener } from '../../cloud/listeners.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import { CLUSTER_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type BalancerOwner, ownerOf, type StatusAddress } from './balancer-owner.ts';
import { decideAdoption } from './decide-adoption.ts';
import { desiredHashOf } from './desired-hash.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import { desiredListenersOf } from './desired-places.ts';
import { type Baseline, baselineOnRecord } from './find-drift.ts';
import type { Notice } from './notice.ts';
import { readOwnerMark } from './owner-mark.ts';
import type { OwnerUnit } from './owner-unit.ts';

/** What was in order when it was last compared. */
type UnitInOrder = {
  readonly desired: string;
  readonly baseline: Baseline;
  readonly loadBalancerId: string;
  readonly addresses: readonly StatusAddress[];
  /** What its user has to know of it. */
  readonly notices: readonly Notice[];
  readonly untilMs: number;
};

/** How often a load balancer is compared with its owner, though nothing has changed. */
export const RESYNC_MS = 600_000;

/** Remembers which load balancers are in order, by the key of their unit. */
export class UnitsInOrder<H extends BalancerOwner> {
  readonly #deps: Pick<ControllerDeps, 'clock' | 'random' | 'config'>;
  readonly #directory: BalancerDirectory;
  readonly #inOrder = new Map<string, UnitInOrder>();
  /** Units of which more is known than a former process could write; only as long as anything is taken up. */
  readonly #seen = new Set<string>();
  #startedMs: number | undefined;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    this.#directory = new BalancerDirectory(deps);
  }

  get(key: string): UnitInOrder | undefined {
    return this.#inOrder.get(key);
  }

  /** Notes that a load balancer is in order. @param mostMs when it is to be compared again at the latest; returns when it is */
  note(key: string, unit: Omit<UnitInOrder, 'untilMs'>, mostMs: number): number {
    const afterMs = Math.min(RESYNC_MS, mostMs);
    this.#see(key);
    this.#inOrder.set(key, { ...unit, untilMs: this.#deps.clock.monotonicMs() + afterMs });
    this.#directory.forgetOld();
    return afterMs;
  }

  /** Notes what is in force of a load balancer that is not in order. */
  noteBaseline(key: string, baseline: Baseline): void {
    this.#see(key);
    const never = { desired: '', addresses: [], notices: [], untilMs: Number.NEGATIVE_INFINITY };
    this.#inOrder.set(key, { ...never, loadBalancerId: baseline.loadBalancerId, baseline });
  }

  /** Notes that a load balancer may not be in order. */
  delete(key: string): void {
    this.#see(key);
    this.#inOrder.delete(key);
  }

  /**
   * Takes up what a former process left in order: what is on record is what is desired, the load balancer is listed, and the cloud
   * shows that it is the owner's: by its tag or, where it is another's, by its listeners. It is compared within the next period, so
   * that a start reads no target. Who may write the owner can write that record, too: it counts once, at a start.
   */
  async resume(
    { key, head, listenerName, addressesOf }: OwnerUnit<H>,
    desired: DesiredLoadBalancer,
    text: string,
    vpcId: string,
    context: CallContext,
  ): Promise<UnitInOrder | undefined> {
    const isFirst = !this.#see(key);
    const { loadBalancerId, settled: hash } = readOwnerMark(head);
    if (!isFirst || loadBalancerId === undefined || hash === undefined || !head.hasFinalizer) return undefined;
    if (hash !== desiredHashOf(loadBalancerId, desired)) return undefined;
    const balancer = await this.#directory.find(loadBalancerId, context);
    if (balancer === undefined) return undefined;
    const { clock, random, config } = this.#deps;
    const { clusterId } = config;
    if (balancer.tags[OWNER_TAG] !== ownerOf(clusterId, head.uid, head.kind)) {
      const { source } = desired;
      if (source.kind !== 'existing' || source.loadBalancerId !== loadBalancerId) return undefined;
      const { kind: _, ...asked } = source;
      const facts = { ...asked, kind: head.kind, clusterId, vpcId };
      if (decideAdoption({ balancer, isOwn: false }, facts) !== undefined) return undefined;
      const its = await this.#directory.listenersOf(loadBalancerId, listenerName, context);
      if ([...desiredListenersOf(desired)].some((key) => !its.has(key))) return undefined;
    }
    const untilMs = clock.monotonicMs() + RESYNC_MS * random();
    const baseline = baselineOnRecord(loadBalancerId, desired);
    const common = { desired: text, loadBalancerId, notices: [], untilMs, baseline };
    const unit = { ...common, addresses: addressesOf(balancer) };
    this.#inOrder.set(key, unit);
    return unit;
  }

  /** Notes that a unit is looked at; returns whether it was, or nothing is taken up any more. */
  #see(key: string): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#startedMs ??= nowMs;
    const isStarting = nowMs - this.#startedMs < RESYNC_MS;
    if (!isStarting) this.#seen.clear();
    const wasSeen = !isStarting || this.#seen.has(key);
    if (isStarting) this.#seen.add(key);
    return wasSeen;
  }
}

/** It serves a start, and is forgotten afterwards. */
const AGE_MS = 120_000;

/**
 * The load balancers with the tag of the cluster, listed once for all owners: a call for each hundred of them, and one for the
 * listeners of each that is not its owner's alone.
 */
class BalancerDirectory {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'config' | 'log'>;
  #listed: Promise<ReadonlyMap<string, LoadBalancer>> | undefined;
  #listedAtMs = Number.NEGATIVE_INFINITY;
  readonly #listeners = new Map<string, Promise<readonly Listener[]>>();

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock' | 'config' | 'log'>) {
    this.#deps = deps;
  }

  /** Returns a load balancer that is complete; undefined when it is not listed, or not known. */
  async find(loadBalancerId: string, context: CallContext): Promise<LoadBalancer | undefined> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#listed === undefined || nowMs - this.#listedAtMs >= AGE_MS) {
      this.#listedAtMs = nowMs;
      this.#listeners.clear();
      this.#listed = this.#list(context);
    }
    const found = (await this.#listed).get(loadBalancerId);
    return found?.isNormal ? found : undefined;
  }

  /** Returns the keys of the listeners of a name, such as `TCP/80`; none when they cannot be listed. */
  async listenersOf(loadBalancerId: string, name: string, context: CallContext): Promise<ReadonlySet<string>> {
    const known = this.#listeners.get(loadBalancerId) ?? this.#listListeners(loadBalancerId, context);
    this.#listeners.set(loadBalancerId, known);
    const its = (await known).filter((listener) => listener.name === name);
    return new Set(its.map(({ protocol, port }) => `${protocol}/${port}`));
  }

  /** Forgets a list that no start needs any more. */
  forgetOld(): void {
    if (this.#deps.clock.monotonicMs() - this.#listedAtMs < AGE_MS) return;
    this.#listed = undefined;
    this.#listeners.clear();
  }

  async #listListeners(loadBalancerId: string, context: CallContext): Promise<readonly Listener[]> {
    const { cloud, log } = this.#deps;
    try {
      return await cloud.listeners.list(loadBalancerId, context);
    } catch (error) {
      if (!isCloudError(error)) throw error;
      log.warn('a load balancer is compared, as its listeners could not be listed', { loadBalancerId, error });
      return [];
    }
  }

  async #list(context: CallContext): Promise<ReadonlyMap<string, LoadBalancer>> {
    const { cloud, config, log } = this.#deps;
    try {
      const query = { tag: { key: CLUSTER_TAG, value: config.clusterId } };
      const { loadBalancers } = await cloud.loadBalancers.find(query, context);
      return new Map(loadBalancers.map((one) => [one.loadBalancerId, one]));
    } catch (error) {
      if (!isCloudError(error)) throw error;
      log.warn('load balancers are read one by one, as they could not be listed', { error });
      return new Map();
    }
  }
}
