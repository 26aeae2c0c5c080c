import { AddressPool } from '../address-pool.ts';
import { ApiError } from '../api-error.ts';
import type { CertificateBook } from '../certificate-book.ts';
import type { SecurityGroupBook } from '../security-group-book.ts';
import type { FabricEvent } from '../types.ts';
import { VersionLog } from '../version-log.ts';
import { type ClbLimits, DEFAULT_LIMITS } from './account-limits.ts';
import { HealthBook } from './health-book.ts';
import { listenerPath } from './listener-path.ts';
import { hasProxy, proxyTable } from './proxy-path.ts';
import { placeId, placesOf, withPlace } from './target-place.ts';
import type { ModelLoadBalancer } from './types.ts';

/** What differs from one account or region to the next. */
export type ClbSpec = {
  /** Public ones have a domain in the place of an address; default false. */
  readonly hasOnlyDomains?: boolean;
  /** Pods of the nodes' own networks may be targets, by the routes of the VPC; default false. */
  readonly takesRoutedTargets?: boolean;
  /** UDP listeners take DeregisterTargetRst; default false. */
  readonly reschedulesUdp?: boolean;
  /** CreateLoadBalancer answers with the ids, not with null; default false. */
  readonly answersIds?: boolean;
  readonly limits?: Partial<ClbLimits>;
};

/** Addresses of public load balancers: the range for benchmarks (RFC 2544), which no VPC has. */
const PUBLIC_VIPS = '198.18.0.0/15';

/** The load balancers with all that they have. */
export class ClbState {
  readonly spec: ClbSpec;
  /** May be changed, as a quota is raised. */
  readonly limits: ClbLimits;
  readonly publicVips = new AddressPool(PUBLIC_VIPS);
  readonly health = new HealthBook();
  /** When load balancers were deleted, lately. */
  deletedAtMs: readonly number[] = [];
  /** When a load balancer last had as much traffic as makes its deletion look like a mistake: 10 Mbit/s. */
  readonly busyAtMs = new Map<string, number>();
  readonly #groups: SecurityGroupBook;
  readonly #certificates: CertificateBook;
  readonly #balancers = new Map<string, ModelLoadBalancer>();
  readonly #past: VersionLog<ModelLoadBalancer> | undefined;
  readonly #events: FabricEvent[];

  /** `events` is where the packets' side reads what happened. */
  constructor(
    spec: ClbSpec,
    events: FabricEvent[],
    groups: SecurityGroupBook,
    certificates: CertificateBook,
    keepsPast: boolean,
  ) {
    this.spec = spec;
    this.#certificates = certificates;
    this.#groups = groups;
    this.limits = { ...DEFAULT_LIMITS, ...spec.limits };
    this.#events = events;
    if (keepsPast) this.#past = new VersionLog();
  }

  /** Load balancers by id, now or at a moment of the last minute. */
  balancers(asOfMs?: number): ReadonlyMap<string, ModelLoadBalancer> {
    return asOfMs === undefined || this.#past === undefined ? this.#balancers : this.#past.asOf(asOfMs);
  }

  /** @throws ApiError InvalidParameter.LBIdNotFound */
  balancer(loadBalancerId: string, asOfMs?: number): ModelLoadBalancer {
    const found = this.balancers(asOfMs).get(loadBalancerId);
    if (found !== undefined) return found;
    throw new ApiError('InvalidParameter.LBIdNotFound', `LoadBalancer not exist: ${loadBalancerId}`);
  }

  /** One that may be changed now: one change at a time. @throws ApiError FailedOperation.ResourceInOperating */
  idleBalancer(loadBalancerId: string): ModelLoadBalancer {
    const balancer = this.balancer(loadBalancerId);
    if (balancer.state === 'NORMAL' && !balancer.isOperating) return balancer;
    throw new ApiError(
      'FailedOperation.ResourceInOperating',
      `Loadbalancer(${loadBalancerId}) is not in normal desState, maybe some tasks are being processed, please try later`,
    );
  }

  /** Enters a load balancer, or what it has become; the packets follow. */
  put(balancer: ModelLoadBalancer, atMs: number): void {
    const before = this.#balancers.get(balancer.loadBalancerId);
    this.#balancers.set(balancer.loadBalancerId, balancer);
    this.#past?.note(balancer.loadBalancerId, atMs, balancer);
    this.#notePackets(before, balancer);
  }

  /** Strikes a load balancer out, with its listeners. */
  remove(loadBalancerId: string, atMs: number): void {
    const before = this.#balancers.get(loadBalancerId);
    if (before === undefined) return;
    this.#balancers.delete(loadBalancerId);
    this.busyAtMs.delete(loadBalancerId);
    this.#past?.note(loadBalancerId, atMs, undefined);
    this.#notePackets(before, { ...before, listeners: new Map() });
    if (before.type === 'OPEN') this.publicVips.give(before.vip);
  }

  /** Notes what a check found about a target, `ip:port`, of a listener or rule. */
  noteHealth(id: string, key: string, isAlive: boolean): void {
    const places = [...this.#balancers.values()].flatMap(({ listeners }) => [...listeners.values()].flatMap(placesOf));
    const place = places.find((one) => placeId(one) === id);
    if (place !== undefined) this.health.note(place, key, isAlive);
  }

  /** Takes the targets that are an instance out of every listener: it is terminated. */
  removeInstance(instanceId: string, atMs: number): void {
    const isOther = (target: { readonly type: string; readonly instanceId?: string }): boolean =>
      target.type !== 'CVM' || target.instanceId !== instanceId;
    for (const balancer of this.#balancers.values()) {
      const places = [...balancer.listeners.values()].flatMap(placesOf);
      const touched = places.filter(({ targets }) => ![...targets.values()].every(isOther));
      if (touched.length === 0) continue;
      const after = touched.reduce(
        (now, place) =>
          withPlace(now, place, (targets) => new Map([...targets].filter(([, target]) => isOther(target)))),
        balancer,
      );
      this.put(after, atMs);
    }
  }

  /** The rules of a security group have changed; the packets follow. */
  groupChanged(groupId: string): void {
    for (const balancer of this.#balancers.values()) {
      if (!balancer.securityGroupIds.includes(groupId)) continue;
      this.#notePackets({ ...balancer, securityGroupIds: [] }, balancer);
    }
  }

  #noteProxy(before: ModelLoadBalancer | undefined, after: ModelLoadBalancer): void {
    if (!hasProxy(after) && (before === undefined || !hasProxy(before))) return;
    const isSame =
      before?.listeners === after.listeners &&
      before.securityGroupIds === after.securityGroupIds &&
      before.passToTarget === after.passToTarget;
    if (isSame) return;
    this.#events.push({ kind: 'clb-proxy', table: proxyTable(after, this.#groups, this.#certificates) });
  }

  #notePackets(before: ModelLoadBalancer | undefined, after: ModelLoadBalancer): void {
    for (const [listenerId, listener] of after.listeners) {
      const areGroupsSame =
        before?.securityGroupIds === after.securityGroupIds && before.passToTarget === after.passToTarget;
      if (areGroupsSame && before?.listeners.get(listenerId) === listener) continue;
      const path = listenerPath(after, listener, this.#groups);
      if (path !== undefined) this.#events.push({ kind: 'clb-listener', listener: path });
    }
    const left = new Set([...after.listeners.values()].flatMap(placesOf).map(placeId));
    for (const place of [...(before?.listeners.values() ?? [])].flatMap(placesOf)) {
      if (!left.has(placeId(place))) this.health.forget(placeId(place));
    }
    for (const [listenerId, listener] of before?.listeners ?? []) {
      if (after.listeners.has(listenerId) || before === undefined) continue;
      const isGone = listenerPath(before, listener, this.#groups) !== undefined;
      if (isGone) this.#events.push({ kind: 'clb-listener-gone', listenerId });
    }
    this.#noteProxy(before, after);
  }
}
