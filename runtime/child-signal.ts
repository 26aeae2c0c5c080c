/** A signal that aborts with its parent. `close` ends that: to be called when nothing waits for it any more. Idempotent. */
type ChildSignal = { readonly signal: AbortSignal; readonly close: () => unknown };

const CHILDREN = new WeakMap<AbortSignal, Set<AbortController>>();

/**
 * Makes a signal of its own for one piece of work among thousands. Each listener that a signal gets is compared with
 * all that it has; with a child for each piece, the parent has one listener.
 */
export function openChildSignal(parent: AbortSignal): ChildSignal {
  const child = new AbortController();
  if (parent.aborted) {
    child.abort(parent.reason);
    return { signal: child.signal, close: () => undefined };
  }
  const children = CHILDREN.get(parent) ?? followParent(parent);
  children.add(child);
  return { signal: child.signal, close: () => children.delete(child) };
}

function followParent(parent: AbortSignal): Set<AbortController> {
  const children = new Set<AbortController>();
  CHILDREN.set(parent, children);
  const onAbort = (): void => {
    for (const child of children) child.abort(parent.reason);
    children.clear();
  };
  parent.addEventListener('abort', onAbort, { once: true });
  return children;
}
