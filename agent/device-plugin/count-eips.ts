import type { Supply } from '../journal/supply.ts';
import type { NodeState } from '../state/node-state.ts';
import type { DeviceSupply } from './decide-devices.ts';

/**
 * Computes what the number of `eip` devices depends on. They are capacity only: the agent gives out no EIP. Undefined
 * while the limit is not known.
 */
export function readEips(state: NodeState, latest: Supply | undefined): DeviceSupply | undefined {
  const { maxEips } = latest ?? state.supply ?? {};
  if (maxEips === undefined) return undefined;
  return { quota: maxEips, allocatable: undefined, assigned: 0, inUse: 0, stranded: 0 };
}
