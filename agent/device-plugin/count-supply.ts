import type { Lease } from '../journal/lease.ts';
import { ON_LINK_ENI_ID, type Supply } from '../journal/supply.ts';
import { countedFamily } from '../pool/demand.ts';
import type { NodeState } from '../state/node-state.ts';
import type { DeviceSupply } from './decide-devices.ts';

/**
 * Computes what the number of `eni-ip` devices depends on; undefined while the node's limits are not known.
 * @param latest The newest description of the node, in force or not: its limits hold before its addresses do.
 */
export function readEniIps(state: NodeState, latest: Supply | undefined): DeviceSupply | undefined {
  const known = state.distrusted === undefined ? (latest ?? state.supply) : state.supply;
  if (known === undefined) return undefined;
  const family = countedFamily(state.pool.state);
  const addresses = [...state.pool.state.addresses.values()].filter((address) => address.family === family);
  // An ENI that the cloud is still attaching has no link yet; that is no fault.
  const attached = new Set((state.supply?.enis ?? []).filter((eni) => eni.attached).map(({ eniId }) => eniId));
  const isFaulty = (eniId: string): boolean => attached.has(eniId) && state.eniProblems.has(eniId);
  return {
    quota: known.warm.limit,
    allocatable: known.allocatable,
    assigned: addresses.filter(({ supplyState }) => supplyState === 'assigned').length,
    inUse: [...state.leases.values()].filter(isOfPool).length,
    stranded: addresses.filter((address) => address.state !== 'leased' && isFaulty(address.eniId)).length,
  };
}

/** Reports whether a lease has an address of the pool: of an ENI, or of the primary interface. */
function isOfPool({ plugin, eniId }: Lease): boolean {
  return eniId === ON_LINK_ENI_ID || (plugin !== 'direct-eni' && plugin !== 'bridge');
}

/**
 * Computes what the number of `direct-eni` devices depends on; undefined while the node's limits are not known.
 * @param latest As for `readEniIps`.
 */
export function readExclusiveEnis(state: NodeState, latest: Supply | undefined): DeviceSupply | undefined {
  const known = state.distrusted === undefined ? (latest ?? state.supply) : state.supply;
  if (known === undefined) return undefined;
  const all = [...state.exclusivePool.state.values()];
  const here = all.filter(({ supplyState }) => supplyState === 'attached');
  return {
    quota: known.direct === undefined ? 0 : known.direct.warm.limit,
    allocatable: undefined,
    assigned: here.length,
    inUse: all.filter(({ use }) => use === 'leased').length,
    stranded: here.filter(({ use, eniId }) => use !== 'leased' && !state.exclusiveNics.has(eniId)).length,
  };
}

/**
 * Computes what the number of `eip` devices depends on. They are capacity only: the agent gives out no EIP. Undefined
 * while the limit is not known.
 */
export function readEips(state: NodeState, latest: Supply | undefined): DeviceSupply | undefined {
  const { maxEips } = latest ?? state.supply ?? {};
  if (maxEips === undefined) return undefined;
  return { quota: maxEips, allocatable: undefined, assigned: 0, inUse: 0, stranded: 0 };
}
