import { type Breakers, isBreakerOpen, resetBreaker, tripBreaker } from '../../cloud/circuit-breaker.ts';
import type { Cloud, Subnet } from '../../cloud/cloud.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { KnownSubnet } from './decide-choices.ts';

/** A subnet with its total, for metrics. */
export type SubnetState = KnownSubnet & { readonly totalIps: number };

/** What is to be described: whole VPCs where they are known, else subnets by id. */
type SubnetScope = { readonly vpcIds: readonly string[]; readonly subnetIds: readonly string[] };

/** A subnet that was found full is tried again after this, unless a description shows free addresses before. */
const FULL_MS = 60_000;

/**
 * Cache of the free addresses of subnets: as last described, minus those requested since. A subnet that the cloud found
 * full is blocked until a description that began later shows free addresses, or its time is over.
 */
export class SubnetCache {
  readonly #cloud: Pick<Cloud, 'subnets'>;
  readonly #clock: Clock;
  readonly #subnets = new Map<string, Subnet>();
  /** Requested since the last description began; negative when more was refused than requested. */
  readonly #requested = new Map<string, number>();
  readonly #onFreeIps: (subnetId: string) => void;
  readonly #fullAtMs = new Map<string, number>();
  #breakers: Breakers = new Map();

  /** `onFreeIps` is called for each subnet that is described with free addresses and was not found full since. */
  constructor(cloud: Pick<Cloud, 'subnets'>, clock: Clock, onFreeIps: (subnetId: string) => void = () => {}) {
    this.#cloud = cloud;
    this.#clock = clock;
    this.#onFreeIps = onFreeIps;
  }

  /** Returns a subnet; undefined: not described, or the cloud does not have it. */
  find(subnetId: string): SubnetState | undefined {
    const subnet = this.#subnets.get(subnetId);
    if (subnet === undefined) return undefined;
    const freeIps = Math.max(0, subnet.freeIps - (this.#requested.get(subnetId) ?? 0));
    const isBlocked = isBreakerOpen(this.#breakers, subnetId, this.#clock.monotonicMs());
    const { cidr, zone, vpcId, totalIps } = subnet;
    return { subnetId, cidr, zone, vpcId, totalIps, freeIps, isBlocked };
  }

  /** Returns all known subnets. */
  all(): readonly SubnetState[] {
    return [...this.#subnets.keys()].flatMap((id) => this.find(id) ?? []);
  }

  /** Counts addresses that are requested now; negative when they were refused or released. */
  use(subnetId: string, count: number): void {
    this.#requested.set(subnetId, (this.#requested.get(subnetId) ?? 0) + count);
  }

  /** Notes that the cloud found a subnet full. */
  block(subnetId: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#fullAtMs.set(subnetId, nowMs);
    // Calls in flight at the same time all find it full: that is one trip.
    if (!isBreakerOpen(this.#breakers, subnetId, nowMs))
      this.#breakers = tripBreaker(this.#breakers, subnetId, FULL_MS, nowMs);
  }

  /**
   * Describes the subnets in one sweep for each VPC. Returns whether any subnet has free addresses now that had none.
   * Subnets that are missing from the answer are removed.
   * @throws CloudError, and then everything is unchanged
   */
  async describe(scope: SubnetScope, signal: AbortSignal): Promise<boolean> {
    const startedMs = this.#clock.monotonicMs();
    const requestedBefore = new Map(this.#requested);
    const freeBefore = new Set(this.all().flatMap((one) => (hasFreeIps(one) ? [one.subnetId] : [])));
    const subnets = await this.#describeScope(scope, signal);
    this.#subnets.clear();
    for (const subnet of subnets) this.#subnets.set(subnet.subnetId, subnet);
    // Addresses requested before the call are in the description by now; those requested during it may not be.
    for (const [id, count] of requestedBefore) this.use(id, -count);
    for (const { subnetId, freeIps } of subnets) {
      const wasFullBefore = (this.#fullAtMs.get(subnetId) ?? Number.NEGATIVE_INFINITY) < startedMs;
      if (freeIps === 0 || !wasFullBefore) continue;
      this.#breakers = resetBreaker(this.#breakers, subnetId);
      this.#onFreeIps(subnetId);
    }
    return this.all().some((one) => hasFreeIps(one) && !freeBefore.has(one.subnetId));
  }

  async #describeScope({ vpcIds, subnetIds }: SubnetScope, signal: AbortSignal): Promise<readonly Subnet[]> {
    const context = { priority: 'pod', owner: 'subnets', signal } as const;
    const { subnets } = this.#cloud;
    if (vpcIds.length > 0) return (await Promise.all(vpcIds.map((id) => subnets.sweep(id, context)))).flat();
    return subnetIds.length > 0 ? await subnets.describe(subnetIds, context) : [];
  }
}

function hasFreeIps({ freeIps, isBlocked }: SubnetState): boolean {
  return freeIps > 0 && !isBlocked;
}
