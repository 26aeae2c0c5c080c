import type { Cooldown, Offer } from '../journal/journal-content.ts';
import type { Lease } from '../journal/lease.ts';
import type { ExclusiveSupplyEni } from '../journal/supply.ts';
import type { ShownPods } from '../pool/brief.ts';
import {
  adoptExclusive,
  adoptExclusiveCooldowns,
  applyExclusiveSupply,
  type ExclusiveLeaseResult,
  type ExclusivePoolState,
  type ExclusiveRequest,
  leaseExclusive,
  markRegistered,
  noteShownExclusive,
  proveFailedExclusive,
  releaseExclusive,
  setOffered,
  tickExclusive,
} from './exclusive-pool.ts';

const NONE: ReadonlySet<string> = new Set();

/** Holds the state of the pool of whole ENIs; each method applies the function of about the same name. */
export class ExclusiveEniPool {
  #state: ExclusivePoolState = new Map();
  #registered: ReadonlySet<string> | undefined;

  /** The state now; never changed in place. */
  get state(): ExclusivePoolState {
    return this.#state;
  }

  /** Addresses that load balancers may still have as targets; undefined: no controller publishes any. */
  get registered(): ReadonlySet<string> | undefined {
    return this.#registered;
  }

  /** @see applyExclusiveSupply */
  applySupply(enis: readonly ExclusiveSupplyEni[]): void {
    this.#state = markRegistered(applyExclusiveSupply(this.#state, enis), this.#registered ?? NONE);
  }

  /** @see leaseExclusive */
  lease(request: Omit<ExclusiveRequest, 'registered'>): ExclusiveLeaseResult {
    const registered = this.#registered === undefined ? {} : { registered: this.#registered };
    const { state, result } = leaseExclusive(this.#state, { ...request, ...registered });
    this.#state = state;
    return result;
  }

  /** @see releaseExclusive */
  release(request: Parameters<typeof releaseExclusive>[1]): readonly Cooldown[] | undefined {
    const { state, cooldowns } = releaseExclusive(this.#state, request);
    this.#state = state;
    return cooldowns;
  }

  /** @see tickExclusive */
  tick(nowMs: number): readonly string[] {
    const { state, ended } = tickExclusive(this.#state, nowMs);
    this.#state = state;
    return ended;
  }

  /** @see adoptExclusive */
  adopt(leases: readonly Lease[]): void {
    this.#state = adoptExclusive(this.#state, leases);
  }

  /** @see adoptExclusiveCooldowns */
  adoptCooldowns(cooldowns: readonly Cooldown[]): void {
    this.#state = adoptExclusiveCooldowns(this.#state, cooldowns);
  }

  /** @see markRegistered */
  setRegistered(ips: ReadonlySet<string> | undefined): void {
    this.#registered = ips;
    this.#state = markRegistered(this.#state, ips ?? NONE);
  }

  /** @see noteShownExclusive */
  noteShown(shown: ShownPods): void {
    this.#state = noteShownExclusive(this.#state, shown);
  }

  /** @see proveFailedExclusive */
  proveFailed(podUid: string): void {
    this.#state = proveFailedExclusive(this.#state, podUid);
  }

  /** @see setOffered */
  setOffered(offers: readonly Pick<Offer, 'eniId' | 'assignmentId'>[], offered: boolean): void {
    this.#state = setOffered(this.#state, offers, offered);
  }
}
