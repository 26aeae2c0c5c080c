import { type OwnerRef, ownerIdOf } from './balancer-owner.ts';
import type { ListenerClaim } from './claim-listeners.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';

const NONE: ReadonlySet<string> = new Set();

/**
 * Remembers which listeners were an owner's when they were seen last, so that one that is renamed is still known. Owners of all
 * kinds have one memory: they share load balancers.
 */
export class ListenerMemory {
  /** By name of the listeners of an owner: their ids. */
  readonly #ids = new Map<string, ReadonlySet<string>>();
  /** By id of an owner: the name of its listeners. */
  readonly #names = new Map<string, string>();

  /** Notes the listeners that an owner has now. */
  note(owner: OwnerRef, listenerName: string, { listeners }: Pick<ObservedLoadBalancer, 'listeners'>): void {
    const its = listeners.flatMap(({ name, listenerId }) => (name === listenerName ? [listenerId] : []));
    this.#ids.set(listenerName, new Set(its));
    this.#names.set(ownerIdOf(owner), listenerName);
  }

  /** Returns how the owner of listeners with a name knows them. */
  claimOf(listenerName: string, wanted: ReadonlySet<string> = NONE): ListenerClaim {
    const isOfOther = (name: string): boolean => name !== listenerName && this.#ids.has(name);
    return { listenerName, wanted, knownIds: this.#ids.get(listenerName) ?? NONE, isOfOther };
  }

  /** Forgets an owner. */
  forget(owner: OwnerRef): void {
    const id = ownerIdOf(owner);
    this.#ids.delete(this.#names.get(id) ?? '');
    this.#names.delete(id);
  }
}
