import { parseNicAlias } from '../../dataplane/host-veth-name.ts';
import type { Operation } from '../../dataplane/operation.ts';
import type { HostLink } from '../eni/locate-enis.ts';

/** An interface of a whole ENI in the host's namespace, with the addresses that are on it. */
export type IdleNic = { readonly link: HostLink; readonly prefixes: readonly string[] };

/**
 * Plans what brings interfaces to rest that nobody has: a DHCP client or a person may have set one up, and then the node's
 * packets would leave by it. Pure. Nothing is planned for one that is at rest.
 */
export function planIdleNics(nics: readonly IdleNic[]): readonly Operation[] {
  return nics.flatMap(({ link: { ifindex, ifname, isUp }, prefixes }): readonly Operation[] => [
    ...prefixes.map((prefix): Operation => ({ kind: 'delete-address', address: { ifindex, ifname, prefix } })),
    ...(isUp === true
      ? [{ kind: 'set-link', ifindex, ifname, change: { up: false }, before: { up: true } } as const]
      : []),
  ]);
}

/** Tells whether an interface came back by itself, as its Pod's namespace died: it bears the attachment's alias still. Pure. */
export function isStray({ ifalias }: HostLink): boolean {
  return parseNicAlias(ifalias ?? '') !== undefined;
}
