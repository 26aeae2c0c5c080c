import { parseHostVethAlias, parseNicAlias } from '../../dataplane/host-veth-name.ts';
import type { Operation } from '../../dataplane/operation.ts';
import type { HostLink } from '../node/host-link.ts';

/** An interface of a whole ENI in the host's namespace, with the addresses that are on it. */
type IdleNic = { readonly link: HostLink; readonly prefixes: readonly string[] };

/**
 * Plans the operations that reset idle interfaces: link down, no addresses. A DHCP client or a person may have set one
 * up, and then the node's packets would leave through it. Plans nothing for an interface that is reset already.
 */
export function planIdleNics(nics: readonly IdleNic[]): readonly Operation[] {
  return nics.flatMap(({ link: { ifindex, ifname, isUp }, prefixes }): readonly Operation[] => [
    ...prefixes.map((prefix): Operation => ({ kind: 'delete-address', address: { ifindex, ifname, prefix } })),
    ...(isUp === true
      ? [{ kind: 'set-link', ifindex, ifname, change: { up: false }, before: { up: true } } as const]
      : []),
  ]);
}

/**
 * Reports whether an interface returned by itself when its Pod's namespace was deleted: it still has the attachment's
 * alias, or another one of ours that its Pod wrote, or not the name that it had before.
 */
export function isReturned(
  { ifalias = '', ifname }: HostLink,
  former: { readonly hostName: string } | undefined,
): boolean {
  if (parseNicAlias(ifalias) !== undefined || parseHostVethAlias(ifalias) !== undefined) return true;
  return former !== undefined && former.hostName !== '' && former.hostName !== ifname;
}
