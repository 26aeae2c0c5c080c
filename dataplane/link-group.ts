import type { PodNetwork } from './network.ts';

/** INIT_NETDEV_GROUP: the group of a new link. @see uapi/linux/netdevice.h */
export const DEFAULT_LINK_GROUP = 0;

/**
 * Returns the link group of a Pod's host link, by which the nftables table finds the Pod's ENI. A GlobalRoute Pod is in
 * the group of no ENI: its packets leave by the main table.
 */
export function linkGroupOf(pod: PodNetwork): number {
  return pod.kind === 'bridge' ? DEFAULT_LINK_GROUP : pod.eniTable;
}
