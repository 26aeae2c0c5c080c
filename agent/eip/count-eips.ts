import type { DeviceSupply } from '../device-plugin/decide-devices.ts';
import type { Supply } from '../journal/supply.ts';
import type { NodeState } from '../node-state.ts';

/** Reads what the number of `eip` devices depends on: places, none of which the agent gives; undefined while nobody says. */
export function readEips(state: NodeState, latest: Supply | undefined): DeviceSupply | undefined {
  const { maxEips } = latest ?? state.supply ?? {};
  if (maxEips === undefined) return undefined;
  return { quota: maxEips, allocatable: undefined, assigned: 0, inUse: 0, stranded: 0 };
}
