import { isLinkLocal } from '../../dataplane/ip-prefix.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { IFF_RUNNING } from '../../netlink/uapi/if-link.ts';
import { finding } from '../catalogue/catalogue.ts';
import { linkId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { NetnsFacts } from '../node/node-facts.ts';

/** Finds that the kernel has no address with which it would ask for IPv6 neighbours of forwarded packets on a link. */
export function findLinkLocalFault(
  { addresses }: Pick<NetnsFacts, 'addresses'>,
  link: LinkMessage | undefined,
): Finding | undefined {
  if (link === undefined || (link.flags & IFF_RUNNING) === 0) return undefined;
  if (addresses.some((message) => message.ifindex === link.ifindex && isLinkLocal(ownAddress(message))))
    return undefined;
  return finding('link-local-missing', {
    what: `${link.ifname} has no IPv6 link-local address: the node finds no IPv6 neighbour by it`,
    fix: ['tke-eni repair'],
    subjects: [linkId(link.ifindex)],
  });
}
