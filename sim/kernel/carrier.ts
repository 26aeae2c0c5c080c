import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import type { Link } from './netns.ts';

/** Reports whether a link that is up can carry packets: of a veth pair both ends have to be up, of a bridge one port. */
export function hasCarrier(link: Link): boolean {
  if ((link.flags & IFF_UP) === 0) return false;
  if (link.kind === 'veth') return link.peer !== undefined && (link.peer.flags & IFF_UP) !== 0;
  if (link.kind !== 'bridge') return true;
  for (const port of link.netns.links.values()) if (port.master === link.ifindex && hasCarrier(port)) return true;
  return false;
}
