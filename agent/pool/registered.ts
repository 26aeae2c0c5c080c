import type { PoolAddress, PoolState } from './pool-state.ts';

/**
 * While a controller publishes for this node, an address is not taken early within this time after its Pod: the controller
 * may be about to publish it, as its view of the Pods is older than the node's. Milliseconds.
 */
const PUBLISHED_BY_MS = 15_000;

/**
 * Reports whether a load balancer may still lead connections to the address, so that no other Pod gets it. A static one is
 * not meant: only Pods of one name get it.
 */
export function isRegistered({ registered }: PoolState, { ip, claim }: Pick<PoolAddress, 'ip' | 'claim'>): boolean {
  return claim === undefined && registered?.has(ip) === true;
}

/** Reports whether no Pod may get the address: it is still registered, or another program on this node has it. */
export function isHeldBack(state: PoolState, address: Pick<PoolAddress, 'ip' | 'claim'>): boolean {
  return isRegistered(state, address) || state.strangers?.has(address.ip) === true;
}

/** Reports whether a cooling address may be taken before its time, as far as load balancers are concerned. */
export function mayCutCooldown(
  { registered }: { readonly registered?: ReadonlySet<string> | undefined },
  { freedAtMs }: Pick<PoolAddress, 'freedAtMs'>,
  nowMs: number,
): boolean {
  return registered === undefined || freedAtMs === undefined || nowMs - freedAtMs >= PUBLISHED_BY_MS;
}
