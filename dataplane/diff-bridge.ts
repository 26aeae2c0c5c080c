import { sysctlName } from '../sysctl/sysctl-key.ts';
import { type PortProperties, plannedPort } from './bridge-port.ts';
import { addressKey, type HostState } from './desired.ts';
import { familyOf } from './ip-prefix.ts';
import type { ObservedHost, ObservedLink } from './observed.ts';
import type { NewBridge, Operation } from './operation.ts';
import { isGatewayPrefix } from './pod-cidr.ts';

/** Lists the bridges that are missing; one whose name another link has cannot be made. */
export function bridgesToMake(desired: HostState, { links }: ObservedHost): readonly NewBridge[] {
  return desired.links
    .filter(({ kind }) => kind === 'bridge')
    .filter(({ ifindex, ifname }) => !links.some((link) => link.ifindex === ifindex || link.ifname === ifname))
    .map(({ ifindex, ifname, mac }) => ({ ifindex, ifname, ...(mac !== undefined && { mac }) }));
}

/**
 * Adds new bridges to what was observed, as the kernel makes them. The MTU is unknown: a bridge follows that of its ports
 * until it is set.
 */
export function withBridges(observed: ObservedHost, made: readonly NewBridge[]): ObservedHost {
  if (made.length === 0) return observed;
  const links = made.map((bridge): ObservedLink => ({ ...bridge, kind: 'bridge', isUp: false, mtu: 0, group: 0 }));
  return { ...observed, links: [...observed.links, ...links] };
}

/** Sets what is planned of new bridges below /proc/sys; what it is at first is not known. */
export function newSettings(
  desired: HostState,
  observed: ObservedHost,
  made: readonly NewBridge[],
): readonly Operation[] {
  const names = new Set(made.map(({ ifname }) => ifname));
  return desired.sysctls
    .filter(({ key }) => key.path.some((element) => names.has(element)) && !observed.sysctls.has(sysctlName(key)))
    .map(({ key, value, isOptional }) => ({
      kind: 'set-sysctl',
      ...{ key, value, before: value },
      ...(isOptional && { isOptional }),
    }));
}

/** What a link that becomes a port has that a port of ours has not. */
const NEW_PORT: PortProperties = { hairpin: false };

/** Compares ports of bridges. A link that becomes a port of another bridge has the flags of a new one. */
export function portOperations(
  desired: HostState,
  observed: ObservedHost,
  missing: ReadonlySet<number>,
): readonly Operation[] {
  const present = new Map(observed.links.map((link) => [link.ifindex, link]));
  return desired.links.flatMap(({ ifindex, ifname, master, hairpin }): readonly Operation[] => {
    const found = present.get(ifindex);
    if (hairpin === undefined || found === undefined || master === undefined || missing.has(master)) return [];
    const before = found.master === master ? (found.oddPort ?? NEW_PORT) : NEW_PORT;
    const change = plannedPort(before);
    return Object.keys(change).length === 0 ? [] : [{ kind: 'set-port', ifindex, ifname, change, before }];
  });
}

/**
 * Deletes addresses that bridges have in blocks which are no longer the node's: the route that such an address makes keeps
 * packets here that are for another node. Not while a bridge has a port that is not planned: it may be a Pod's of another
 * program, whose gateway is such an address.
 */
export function formerGateways(desired: HostState, observed: ObservedHost): readonly Operation[] {
  const wanted = new Set(desired.addresses.map(addressKey));
  const planned = new Set(desired.links.map(({ ifindex }) => ifindex));
  const shared = new Set(observed.links.filter(({ ifindex }) => !planned.has(ifindex)).map(({ master }) => master));
  const bridges = new Set(
    desired.links
      .filter(({ kind, ifindex }) => kind === 'bridge' && !shared.has(ifindex))
      .map(({ ifindex }) => ifindex),
  );
  return observed.addresses
    .filter((address) => bridges.has(address.ifindex) && familyOf(address.prefix) === 4)
    .filter((address) => !wanted.has(addressKey(address)) && isGatewayPrefix(address.prefix))
    .map((address) => ({ kind: 'delete-address', address }));
}
