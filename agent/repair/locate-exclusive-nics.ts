import { nicsByMac } from '../../dataplane/find-nic.ts';
import type { ExclusiveNic } from '../../dataplane/network.ts';
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
   * name, without what its Pod changed. Returns it as it is then; undefined when it is gone.
   */
  resetNic(nic: Omit<ExclusiveNic, 'addresses'>): HostLink | undefined;
};

/** An interface that returned by itself and whose lease has ended, and what it is reset to. */
export type ReturnedNic = {
  readonly eniId: string;
  readonly link: HostLink;
  readonly nic: Omit<ExclusiveNic, 'addresses'>;
};

/** The MTU of Ethernet, bytes: every ENI carries it. For an interface of whose MTU nothing is recorded. */
const SAFE_MTU = 1500;

/**
 * Notes which whole ENIs have their interface in the host's namespace. Returns the operations that reset interfaces
 * which something has set up there, also that of a Pod whose namespace was deleted: it is idle. Those that returned by
 * themselves are for `resetReturnedNics`, and serve no Pod before. Changes no kernel state.
 */
export function locateExclusiveNics(
  state: NodeState,
  kernel: Pick<NicKernel, 'addressesOn'>,
  links: readonly HostLink[],
): { readonly operations: readonly Operation[]; readonly returned: readonly ReturnedNic[] } {
  const found = findExclusiveNics(state, links);
  const returned = findReturnedNics(state, found);
  const dirty = new Set(returned.map(({ eniId }) => eniId));
  state.exclusiveNics.clear();
  for (const [eniId, link] of found) {
    if (dirty.has(eniId)) continue;
    state.exclusiveNics.set(eniId, link);
    // As it was, or renamed since by the node's owner.
    state.formerNics.delete(eniId);
  }
  const idle = [...found.values()].map((link) => ({ link, prefixes: kernel.addressesOn(link.ifindex) }));
  return { operations: planIdleNics(idle), returned };
}

/**
 * Name and MTU are those of the lease that this agent ended. Without it the name is derived from the MAC, and the MTU is one
 * that every ENI carries: alias, name and MTU of the interface are as its Pod left them.
 */
function findReturnedNics(
  { leases, formerNics }: NodeState,
  found: ReadonlyMap<string, HostLink>,
): readonly ReturnedNic[] {
  const leased = new Set([...leases.values()].map(({ eniId }) => eniId));
  return [...found].flatMap(([eniId, link]): readonly ReturnedNic[] => {
    const former = formerNics.get(eniId);
    if (leased.has(eniId) || !isReturned(link, former)) return [];
    const { mac = '', permAddress = mac } = link;
    return [{ eniId, link, nic: { mac: permAddress, hostName: '', mtu: SAFE_MTU, ...former } }];
  });
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
  const byMac = nicsByMac(links.map((link) => ({ ...link, address: link.mac })));
  return new Map(
    [...known].flatMap(([eniId, mac]) => {
      const link = byMac.get(mac);
      return link === undefined ? [] : [[eniId, link] as const];
    }),
  );
}
