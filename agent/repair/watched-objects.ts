import { hostVethAlias } from '../../dataplane/host-veth-name.ts';
import { DEFAULT_LINK_GROUP } from '../../dataplane/link-group.ts';
import type { BridgeNetwork, NodeNetwork } from '../../dataplane/network.ts';
import { BRIDGE_IFINDEX, BRIDGE_MAC, DIRECT_LINK_GROUP } from '../../dataplane/numbers.ts';
import type { Lease } from '../journal/lease.ts';
import type { PrimaryInterface } from '../node/node-network.ts';
import type { NodeState } from '../state/node-state.ts';
import type { WatchedObjects } from './relevant-event.ts';

const BITS = { 4: 32, 6: 128 } as const;

/** Lists the kernel objects whose changes may call for a repair now. */
export function watchedObjects(
  state: NodeState,
  primary: PrimaryInterface | undefined,
  node?: Pick<NodeNetwork, 'bridge' | 'connected' | 'fastPath'>,
): WatchedObjects {
  const { bridge, connected = [], fastPath } = node ?? {};
  const active = [...state.leases.values()].filter(
    (lease) => lease.state === 'active' || state.wired.has(`${lease.containerId}/${lease.ifName}`),
  );
  const veths = new Map(
    active.flatMap((lease) => {
      const table = groupOf(state, lease);
      if (lease.hostVeth?.ifindex === undefined || table === undefined) return [];
      const { ifindex, mac, name } = lease.hostVeth;
      const port = lease.block?.wiring === 'bridge' && bridge !== undefined ? { master: bridge.ifindex } : {};
      return [[ifindex, { name, group: table, mtu: lease.mtu, mac, alias: hostVethAlias(lease), ...port }] as const];
    }),
  );
  return {
    ...(bridge === undefined ? {} : { bridge: watchedBridge(bridge) }),
    veths,
    ifindexes: new Set([
      ...veths.keys(),
      ...[...state.enis.values(), ...state.directNics.values()].map(({ ifindex }) => ifindex),
      ...(primary === undefined ? [] : [primary.ifindex]),
      ...(bridge === undefined ? [] : [bridge.ifindex]),
    ]),
    macs: new Set([...(state.supply?.enis ?? []), ...(state.supply?.direct?.enis ?? [])].map(({ mac }) => mac)),
    primaryIps: new Set([...(primary?.addresses ?? []), ...state.nodeIps]),
    connectedLinks: new Set(connected.map(({ ifindex }) => ifindex)),
    hasFilters: fastPath === 'bpf',
    podPrefixes: new Set(active.flatMap(({ addresses }) => addresses.map(({ ip, family }) => `${ip}/${BITS[family]}`))),
  };
}

function watchedBridge({ ifindex, name, mtu }: BridgeNetwork): NonNullable<WatchedObjects['bridge']> {
  return { ifindex, name, mtu, ...(ifindex === BRIDGE_IFINDEX ? { mac: BRIDGE_MAC } : {}) };
}

function groupOf({ eniRecords }: NodeState, { plugin, eniId }: Lease): number | undefined {
  if (plugin === 'bridge') return DEFAULT_LINK_GROUP;
  return plugin === 'direct-eni' ? DIRECT_LINK_GROUP : eniRecords.get(eniId)?.table;
}
