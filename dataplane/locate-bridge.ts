import type { BridgeNetwork } from './network.ts';
import { BRIDGE_IFINDEX } from './numbers.ts';

/** A link of the host's namespace. */
type Link = { readonly ifindex: number; readonly ifname: string; readonly kind?: string | undefined };

/**
 * Finds the bridge of GlobalRoute Pods by its name: one that another program made is used as it is. Ours is also found
 * under another name, which it then keeps. Where there is none, the index that ours will have is returned. A link of
 * another kind is no bridge; the diff reports it.
 */
export function locateBridge(
  links: readonly Link[],
  name: string,
): Pick<BridgeNetwork, 'name' | 'ifindex' | 'isPresent'> {
  const bridges = links.filter(({ kind }) => kind === 'bridge');
  const found =
    bridges.find(({ ifname }) => ifname === name) ?? bridges.find(({ ifindex }) => ifindex === BRIDGE_IFINDEX);
  return { name: found?.ifname ?? name, ifindex: found?.ifindex ?? BRIDGE_IFINDEX, isPresent: found !== undefined };
}
