import type { Operation } from '../../dataplane/operation.ts';
import { sysctlName, tcpBeLiberal } from '../../sysctl/sysctl-key.ts';
import type { FoundLink, FoundSysctl, LinkSettings } from './found-state.ts';

/** Returns the operation that restores what of a link is still as we set it; undefined when nothing is. */
export function linkRestoration(
  { ifindex, ifname, found, set }: FoundLink,
  now: { readonly isUp: boolean; readonly mtu: number },
): Extract<Operation, { kind: 'set-link' }> | undefined {
  const change: LinkSettings = {
    ...(found.up !== undefined && found.up !== now.isUp && now.isUp === set.up ? { up: found.up } : {}),
    ...(found.mtu !== undefined && found.mtu !== now.mtu && now.mtu === set.mtu ? { mtu: found.mtu } : {}),
  };
  return Object.keys(change).length === 0 ? undefined : { kind: 'set-link', ifindex, ifname, change, before: set };
}

/**
 * Returns the operation that restores a sysctl; undefined when it is restored already, was changed by others since, or
 * others rely on it.
 */
export function sysctlRestoration(
  sysctl: FoundSysctl,
  now: string,
): Extract<Operation, { kind: 'set-sysctl' }> | undefined {
  if (now === sysctl.found || hasForeignValue(sysctl, now) || isShared(sysctl)) return undefined;
  const key = { path: sysctl.path };
  // Connection tracking does not know the present sequence numbers of what the fast path followed.
  const keepsConnections = sysctlName(key) === sysctlName(tcpBeLiberal());
  return { kind: 'set-sysctl', key, value: sysctl.found, before: now, ...(keepsConnections && { keepsConnections }) };
}

/** Reports whether another program changed a sysctl after us. */
export function hasForeignValue({ found, set }: FoundSysctl, now: string): boolean {
  return now !== found && now !== set;
}

/**
 * Reports whether other programs rely on a setting: forwarding, and accept_ra=2, with which a forwarding node accepts
 * RAs.
 */
export function isShared({ path, set }: FoundSysctl): boolean {
  const setting = path.at(-1);
  return setting === 'ip_forward' || setting === 'forwarding' || (setting === 'accept_ra' && set === '2');
}
