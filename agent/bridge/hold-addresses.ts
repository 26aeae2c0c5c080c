import type { NodeState } from '../state/node-state.ts';

/**
 * Holds exactly these addresses of the node's blocks: no Pod gets them, because something else than a lease of ours may
 * have them. Those that were held before and are not among them are free again.
 */
export function holdAddresses(state: NodeState, ips: ReadonlySet<string>): void {
  const over = [...state.heldIps].filter((ip) => !ips.has(ip));
  state.heldIps = ips;
  state.bridgePool.restore(over);
  state.bridgePool.withdraw([...ips]);
}
