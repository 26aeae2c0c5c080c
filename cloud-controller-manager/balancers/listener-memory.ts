import type { ObservedLoadBalancer } from './observed-load-balancer.ts';

const NONE: ReadonlySet<string> = new Set();

/** Remembers which listeners were an owner's when they were seen last, so that one that is renamed is still known. */
export class ListenerMemory {
  /** By name of the listeners of an owner: their ids. */
  readonly #ids = new Map<string, ReadonlySet<string>>();
  /** By key of an owner: the name of its listeners. */
  readonly #names = new Map<string, string>();

  /** Notes the listeners that an owner has now. */
  note(owner: string, listenerName: string, { listeners }: Pick<ObservedLoadBalancer, 'listeners'>): void {
    const its = listeners.flatMap(({ name, listenerId }) => (name === listenerName ? [listenerId] : []));
    this.#ids.set(listenerName, new Set(its));
    this.#names.set(owner, listenerName);
  }

  /** Returns the ids of the listeners with a name, as they were seen last. */
  idsOf(listenerName: string): ReadonlySet<string> {
    return this.#ids.get(listenerName) ?? NONE;
  }

  /** Forgets an owner. */
  forget(owner: string): void {
    this.#ids.delete(this.#names.get(owner) ?? '');
    this.#names.delete(owner);
  }
}
