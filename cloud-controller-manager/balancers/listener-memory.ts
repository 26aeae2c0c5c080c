import { type OwnerRef, ownerIdOf } from './balancer-owner.ts';
import type { ListenerClaim } from './claim-listeners.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';

const NONE: ReadonlySet<string> = new Set();

/**
 * Remembers which listeners were an owner's when they were seen last, and where, so that one that is renamed is still known, and a
 * record that its owner edits loses none. Owners of all kinds have one memory: they share load balancers.
 */
export class ListenerMemory {
  /** By name of the listeners of an owner: their ids. */
  readonly #ids = new Map<string, ReadonlySet<string>>();
  /** By name of the listeners of an owner: the load balancer that has some. */
  readonly #places = new Map<string, string>();
  /** By id of an owner: the name of its listeners. */
  readonly #names = new Map<string, string>();

  /** Notes the listeners that an owner has now. */
  note(
    owner: OwnerRef,
    listenerName: string,
    {
      listeners,
      balancer: { loadBalancerId },
    }: Pick<ObservedLoadBalancer, 'listeners'> & { readonly balancer: { readonly loadBalancerId: string } },
  ): void {
    const its = listeners.flatMap(({ name, listenerId }) => (name === listenerName ? [listenerId] : []));
    this.#ids.set(listenerName, new Set(its));
    if (its.length > 0) this.#places.set(listenerName, loadBalancerId);
    else if (this.#places.get(listenerName) === loadBalancerId) this.#places.delete(listenerName);
    this.#names.set(ownerIdOf(owner), listenerName);
  }

  /** Returns how the owner of listeners with a name knows them. */
  claimOf(listenerName: string, wanted: ReadonlySet<string> = NONE): ListenerClaim {
    const isOfOther = (name: string): boolean => name !== listenerName && this.#ids.has(name);
    const knownAt = this.#places.get(listenerName);
    const known = { knownIds: this.#ids.get(listenerName) ?? NONE, ...(knownAt === undefined ? {} : { knownAt }) };
    return { listenerName, wanted, isOfOther, ...known };
  }

  /** Forgets an owner. */
  forget(owner: OwnerRef): void {
    const id = ownerIdOf(owner);
    const listenerName = this.#names.get(id) ?? '';
    this.#ids.delete(listenerName);
    this.#places.delete(listenerName);
    this.#names.delete(id);
  }
}
