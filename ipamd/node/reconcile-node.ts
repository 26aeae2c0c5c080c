import type { NodeDeps } from './node-deps.ts';

/** What happens to a key next; the same as of the controllers' runtime. */
export type NodeReconcileResult = { readonly kind: 'done' } | { readonly kind: 'again'; readonly afterMs: number };

/** Brings one node's supply to its demand, as far as it goes now. */
export async function reconcileNode(
  _deps: NodeDeps,
  _name: string,
  _signal: AbortSignal,
): Promise<NodeReconcileResult> {
  throw new Error('not built yet');
}
