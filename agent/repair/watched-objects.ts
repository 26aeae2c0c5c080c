import { DIRECT_LINK_GROUP } from '../../dataplane/numbers.ts';
import type { PrimaryInterface } from '../node-network.ts';
import type { NodeState } from '../node-state.ts';
import type { WatchedObjects } from './relevant-event.ts';

const BITS = { 4: 32, 6: 128 } as const;

/** Lists the kernel objects whose changes may call for a repair now. */
export function watchedObjects(state: NodeState, primary: PrimaryInterface | undefined): WatchedObjects {
  const active = [...state.leases.values()].filter(
    (lease) => lease.state === 'active' || state.wired.has(`${lease.containerId}/${lease.ifName}`),
  );
  const veths = new Map(
    active.flatMap((lease) => {
      const { ifindex, mac } = lease.hostVeth ?? {};
      const table = lease.plugin === 'direct-eni' ? DIRECT_LINK_GROUP : state.eniRecords.get(lease.eniId)?.table;
      if (ifindex === undefined || mac === undefined || table === undefined) return [];
      return [[ifindex, { group: table, mtu: lease.mtu, mac }] as const];
    }),
  );
  return {
    veths,
    ifindexes: new Set([
      ...veths.keys(),
      ...[...state.enis.values(), ...state.directNics.values()].map(({ ifindex }) => ifindex),
      ...(primary === undefined ? [] : [primary.ifindex]),
    ]),
    macs: new Set([...(state.supply?.enis ?? []), ...(state.supply?.direct?.enis ?? [])].map(({ mac }) => mac)),
    podPrefixes: new Set(active.flatMap(({ addresses }) => addresses.map(({ ip, family }) => `${ip}/${BITS[family]}`))),
  };
}
