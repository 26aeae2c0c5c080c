import { findNic } from '../../dataplane/exclusive-nic.ts';
import type { Operation } from '../../dataplane/operation.ts';
import type { HostLink } from '../node/host-link.ts';
import type { NodeState } from '../state/node-state.ts';
import { isReturned, planIdleNics } from './plan-idle-nics.ts';

/** The functions of the host's kernel that whole ENIs need. */
export type NicKernel = {
  /** Addresses on a link of the host's namespace, as `address/length`. */
  addressesOn(ifindex: number): readonly string[];
  /**
   * Resets an interface that returned to the host's namespace by itself: down, without addresses, under its former
   * name.
   */
  resetNic(link: HostLink): void;
};

/**
 * Notes which whole ENIs have their interface in the host's namespace. Returns the operations that reset interfaces
 * which something has set up there, also that of a Pod whose namespace was deleted: it is idle. Changes no kernel
 * state.
 */
export function locateExclusiveNics(
  state: NodeState,
  kernel: Pick<NicKernel, 'addressesOn'>,
  links: readonly HostLink[],
): readonly Operation[] {
  const found = findExclusiveNics(state, links);
  state.exclusiveNics.clear();
  for (const [eniId, link] of found) state.exclusiveNics.set(eniId, link);
  return planIdleNics([...found.values()].map((link) => ({ link, prefixes: kernel.addressesOn(link.ifindex) })));
}

/** Finds interfaces that returned by themselves and whose lease has ended. */
export function findReturnedNics(state: NodeState): readonly HostLink[] {
  const leased = new Set([...state.leases.values()].map(({ eniId }) => eniId));
  return [...state.exclusiveNics].flatMap(([eniId, link]) => (isReturned(link) && !leased.has(eniId) ? [link] : []));
}

/** Finds the interfaces of whole ENIs among the host's links, by ENI id; also of ENIs that only a lease names. */
export function findExclusiveNics(
  { supply, leases }: Pick<NodeState, 'supply' | 'leases'>,
  links: readonly HostLink[],
): ReadonlyMap<string, HostLink> {
  const ofLeases = [...leases.values()].flatMap(({ eniId, nic }) =>
    nic === undefined ? [] : [{ eniId, mac: nic.mac }],
  );
  const known = new Map([...(supply?.direct?.enis ?? []), ...ofLeases].map(({ eniId, mac }) => [eniId, mac]));
  if (known.size === 0) return new Map();
  const candidates = links.map((link) => ({ ...link, address: link.mac }));
  return new Map(
    [...known].flatMap(([eniId, mac]) => {
      const link = findNic(candidates, mac);
      return link === undefined ? [] : [[eniId, link] as const];
    }),
  );
}
