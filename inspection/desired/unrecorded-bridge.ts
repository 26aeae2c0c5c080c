import { locateBridge } from '../../dataplane/locate-bridge.ts';
import type { BridgeNetwork } from '../../dataplane/network.ts';
import { BRIDGE_NAME } from '../../dataplane/numbers.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';

/**
 * Returns the bridge of GlobalRoute Pods where no record of the node says what it should be: one that takes what its Pods
 * send. Undefined without such Pods. @param mtus of the Pods on it
 */
export function unrecordedBridge(links: readonly LinkMessage[], mtus: readonly number[]): BridgeNetwork | undefined {
  if (mtus.length === 0) return undefined;
  const place = locateBridge(links, BRIDGE_NAME);
  const { mtu = 0 } = links.find(({ ifindex }) => place.isPresent && ifindex === place.ifindex) ?? {};
  return { ...place, mtu: Math.max(mtu, ...mtus), wiring: 'bridge' };
}
