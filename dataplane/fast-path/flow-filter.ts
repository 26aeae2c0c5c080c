import { filterProgram, type TrafficFilterMessage } from '../../netlink/traffic-filter-message.ts';
import { ETH_P_ALL, parentOf } from '../../netlink/traffic-filter-request.ts';
import type { FilterState } from '../desired.ts';
import { FLOW_FILTER, FLOW_PROGRAM_NAME } from '../numbers.ts';

/** A traffic filter of the fast path that a link has, and the number of its loaded program. */
export type FlowFilter = Omit<FilterState, 'ifname'> & { readonly programId: number };

/** Reads a filter of the fast path; undefined for a filter of others. @throws CodecError */
export function flowFilterOf(message: TrafficFilterMessage): FlowFilter | undefined {
  const { ifindex, handle, priority, protocol } = message;
  if (handle !== FLOW_FILTER.handle || priority !== FLOW_FILTER.priority || protocol !== ETH_P_ALL) return undefined;
  const found = filterProgram(message);
  const program = (['fast', 'learn'] as const).find((each) => FLOW_PROGRAM_NAME[each] === found?.name);
  const direction = (['ingress', 'egress'] as const).find((each) => parentOf(each) === message.parent);
  if (found?.isDirectAction !== true || program === undefined || direction === undefined) return undefined;
  return { ifindex, direction, program, programId: found.id };
}
