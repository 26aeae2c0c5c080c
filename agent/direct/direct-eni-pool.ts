import type { Cooldown, Offer } from '../journal/journal-content.ts';
import type { Lease } from '../journal/lease.ts';
import type { DirectSupplyEni } from '../journal/supply.ts';
import type { ShownPods } from '../pool/brief.ts';
import {
  adoptDirect,
  adoptDirectCooldowns,
  applyDirectSupply,
  type DirectLeaseResult,
  type DirectPoolState,
  type DirectRequest,
  leaseDirect,
  markRegistered,
  noteShownDirect,
  proveFailedDirect,
  releaseDirect,
  setOffered,
  tickDirect,
} from './direct-pool.ts';

const NONE: ReadonlySet<string> = new Set();

/** Holds the state of the pool of whole ENIs; each method applies the function of about the same name. */
export class DirectEniPool {
  #state: DirectPoolState = new Map();
  #registered: ReadonlySet<string> | undefined;

  /** The state now; never changed in place. */
  get state(): DirectPoolState {
    return this.#state;
  }

  /** Addresses that load balancers may still have as targets; undefined: no controller publishes any. */
  get registered(): ReadonlySet<string> | undefined {
    return this.#registered;
  }

  /** @see applyDirectSupply */
  applySupply(enis: readonly DirectSupplyEni[]): void {
    this.#state = markRegistered(applyDirectSupply(this.#state, enis), this.#registered ?? NONE);
  }

  /** @see leaseDirect */
  lease(request: Omit<DirectRequest, 'registered'>): DirectLeaseResult {
    const registered = this.#registered === undefined ? {} : { registered: this.#registered };
    const { state, result } = leaseDirect(this.#state, { ...request, ...registered });
    this.#state = state;
    return result;
  }

  /** @see releaseDirect */
  release(request: Parameters<typeof releaseDirect>[1]): readonly Cooldown[] | undefined {
    const { state, cooldowns } = releaseDirect(this.#state, request);
    this.#state = state;
    return cooldowns;
  }

  /** @see tickDirect */
  tick(nowMs: number): readonly string[] {
    const { state, ended } = tickDirect(this.#state, nowMs);
    this.#state = state;
    return ended;
  }

  /** @see adoptDirect */
  adopt(leases: readonly Lease[]): void {
    this.#state = adoptDirect(this.#state, leases);
  }

  /** @see adoptDirectCooldowns */
  adoptCooldowns(cooldowns: readonly Cooldown[]): void {
    this.#state = adoptDirectCooldowns(this.#state, cooldowns);
  }

  /** @see markRegistered */
  setRegistered(ips: ReadonlySet<string> | undefined): void {
    this.#registered = ips;
    this.#state = markRegistered(this.#state, ips ?? NONE);
  }

  /** @see noteShownDirect */
  noteShown(shown: ShownPods): void {
    this.#state = noteShownDirect(this.#state, shown);
  }

  /** @see proveFailedDirect */
  proveFailed(podUid: string): void {
    this.#state = proveFailedDirect(this.#state, podUid);
  }

  /** @see setOffered */
  setOffered(offers: readonly Pick<Offer, 'eniId' | 'assignmentId'>[], offered: boolean): void {
    this.#state = setOffered(this.#state, offers, offered);
  }
}
