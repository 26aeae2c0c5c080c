import type { Cooldown, Offer } from '../journal/journal-content.ts';
import type { Lease } from '../journal/lease.ts';
import type { Supply, WarmTargets } from '../journal/supply.ts';
import { applySupply } from './apply-supply.ts';
import type { ShownPods } from './brief.ts';
import { demand, type OutsideDemand } from './demand.ts';
import { leaseStatic, type StaticLeaseRequest, type StaticLeaseResult } from './lease-static.ts';
import {
  adopt,
  adoptCooldowns,
  adoptOffers,
  counts,
  forceCool,
  lease,
  noteShown,
  proveFailed,
  release,
  restore,
  setRegistered,
  setStrangers,
  tick,
  withdraw,
} from './pool.ts';
import {
  type AdoptConflict,
  EMPTY_POOL,
  type LeaseRequest,
  type LeaseResult,
  type PoolAddress,
  type PoolCounts,
  type PoolDemand,
  type PoolState,
  type ReleaseResult,
  type Step,
  type SupplyResult,
} from './pool-state.ts';

/** Holds the state of the pool; each method applies the function of the same name. */
export class IpPool {
  #state: PoolState = EMPTY_POOL;

  /** The state now; never changed in place. */
  get state(): PoolState {
    return this.#state;
  }

  /** @see applySupply */
  applySupply(supply: Supply, minEpoch?: number): SupplyResult {
    return this.#apply(applySupply(this.#state, supply, minEpoch));
  }

  /** @see lease */
  lease(request: LeaseRequest): LeaseResult {
    return this.#apply(lease(this.#state, request));
  }

  /** @see leaseStatic */
  leaseStatic(request: StaticLeaseRequest): StaticLeaseResult {
    return this.#apply(leaseStatic(this.#state, request));
  }

  /** @see forceCool */
  forceCool(request: LeaseRequest): LeaseResult {
    return this.#apply(forceCool(this.#state, request));
  }

  /** @see release */
  release(request: Parameters<typeof release>[1]): ReleaseResult {
    return this.#apply(release(this.#state, request));
  }

  /** @see tick */
  tick(nowMs: number): readonly string[] {
    return this.#apply(tick(this.#state, nowMs));
  }

  /** @see adopt */
  adopt(leases: readonly Lease[]): readonly AdoptConflict[] {
    return this.#apply(adopt(this.#state, leases));
  }

  /** @see adoptCooldowns */
  adoptCooldowns(cooldowns: readonly Cooldown[]): void {
    this.#apply(adoptCooldowns(this.#state, cooldowns));
  }

  /** @see adoptOffers */
  adoptOffers(offers: readonly Offer[]): void {
    this.#apply(adoptOffers(this.#state, offers));
  }

  /** @see withdraw */
  withdraw(ips: readonly string[]): readonly PoolAddress[] {
    return this.#apply(withdraw(this.#state, ips));
  }

  /** @see setRegistered */
  setRegistered(ips: ReadonlySet<string> | undefined): void {
    this.#apply(setRegistered(this.#state, ips));
  }

  /** @see setStrangers */
  setStrangers(ips: ReadonlySet<string>): void {
    this.#apply(setStrangers(this.#state, ips));
  }

  /** @see noteShown */
  noteShown(shown: ShownPods): void {
    this.#apply(noteShown(this.#state, shown));
  }

  /** @see proveFailed */
  proveFailed(podUid: string): void {
    this.#apply(proveFailed(this.#state, podUid));
  }

  /** @see restore */
  restore(ips: readonly string[]): readonly PoolAddress[] {
    return this.#apply(restore(this.#state, ips));
  }

  /** @see demand */
  demand(warm: WarmTargets, outside?: OutsideDemand): PoolDemand {
    return demand(this.#state, warm, outside);
  }

  /** @see counts */
  counts(): PoolCounts {
    return counts(this.#state);
  }

  #apply<R>(step: Step<R>): R {
    this.#state = step.state;
    return step.result;
  }
}
