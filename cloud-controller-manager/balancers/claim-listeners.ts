import type { Target } from '../../cloud/targets.ts';
import type { ObservedListener, ObservedLoadBalancer } from './observed-load-balancer.ts';

/** How an owner knows its listeners, beside their name. */
export type ListenerClaim = {
  /** The name of the owner's listeners. It is the mark of the owner's targets, too. */
  readonly listenerName: string;
  /** Keys of the listeners that the owner asks for: `TCP/80`, `HTTP/80`. */
  readonly wanted: ReadonlySet<string>;
  /** Ids of listeners that were the owner's when they were seen last. */
  readonly knownIds: ReadonlySet<string>;
  /** The load balancer where they were seen last, whatever the owner's record says; absent: not known. */
  readonly knownAt?: string;
  /** Whether a name is that of the listeners of another owner, which is kept by this process. */
  readonly isOfOther: (name: string) => boolean;
};

/**
 * Gives each listener of an owner the owner's name, also one that another client renamed: on the owner's own load balancer it is
 * known by protocol and port, on any other by its id or by the mark of its targets. Neither can be written by who may change
 * the owner's object alone.
 */
export function claimListeners(
  { listeners, isOwn }: Pick<ObservedLoadBalancer, 'listeners' | 'isOwn'>,
  targets: readonly Target[],
  { listenerName, wanted, knownIds, isOfOther }: ListenerClaim,
): readonly ObservedListener[] {
  const marked = new Set(targets.flatMap(({ tag, listenerId }) => (tag === listenerName ? [listenerId] : [])));
  return listeners.map((listener) => {
    const { name, listenerId, protocol, port, endPort = port } = listener;
    if (name === listenerName) return listener;
    const isAtPlace = isOwn && endPort === port && wanted.has(`${protocol}/${port}`);
    const isKnown = knownIds.has(listenerId) || (marked.has(listenerId) && !isOfOther(name));
    return isAtPlace || isKnown ? { ...listener, name: listenerName, calledAs: name } : listener;
  });
}

/** Reports whether a listener may be deleted as the owner's: on a load balancer of others the cloud has to have its name. */
export function mayDelete({ calledAs }: ObservedListener, isOwn: boolean): boolean {
  return isOwn || calledAs === undefined;
}
