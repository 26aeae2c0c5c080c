import type { NetnsFacts } from '../../../inspection/node/node-facts.ts';
import { filterProgram, type TrafficFilterMessage } from '../../../netlink/traffic-filter-message.ts';
import { ETH_P_ALL, parentOf } from '../../../netlink/traffic-filter-request.ts';
import { TCM_IFINDEX_MAGIC_BLOCK } from '../../../netlink/uapi/pkt-sched.ts';
import type { IpNames, IpObject } from './ip-names.ts';
import { type JsonView, marksOf } from './render-dump-json.ts';

/**
 * Renders the traffic filters of a namespace in one list: each object has its link and place, and members as those of
 * `tc -j filter`. Null when they could not be read. @see tc(8)
 */
export function renderFiltersJson(
  { traffic }: Pick<NetnsFacts, 'traffic'>,
  names: IpNames,
  view: JsonView,
): readonly IpObject[] | null {
  if (traffic.filters.kind === 'unknown') return null;
  return traffic.filters.value.filter(hasOptions).map((filter) => ({
    ...linkOf(filter, names),
    parent: placeOf(filter),
    protocol: filter.protocol === ETH_P_ALL ? 'all' : `0x${filter.protocol.toString(16)}`,
    pref: filter.priority,
    kind: filter.kind,
    options: { handle: `0x${filter.handle.toString(16)}`, ...programJson(filter) },
    ...marksOf(view, undefined, () => view.owners?.ownerOfIfindex(filter.ifindex)),
  }));
}

/** Renders one line for each traffic filter, for people: a script cannot load the program of one. */
export function renderFilterLines(filters: readonly TrafficFilterMessage[], names: IpNames): readonly string[] {
  return filters.filter(hasOptions).map((filter) => {
    const program = filterProgram(filter);
    const shown = program === undefined ? '' : ` ${program.name} id ${program.id}`;
    const [what, where] = Object.entries(linkOf(filter, names))[0] ?? [];
    const place = `${what} ${where} ${placeOf(filter)} pref ${filter.priority}`;
    return `left out: filter ${place} ${filter.kind}${shown}`;
  });
}

/** Filters of a block that links share have its number in place of a link. */
function linkOf({ ifindex, parent }: TrafficFilterMessage, names: IpNames): IpObject {
  return ifindex === TCM_IFINDEX_MAGIC_BLOCK ? { block: parent } : { dev: names.link(ifindex) };
}

function programJson(filter: TrafficFilterMessage): IpObject {
  const program = filterProgram(filter);
  if (program === undefined) return {};
  const { name, id, tag, isDirectAction } = program;
  return { bpf_name: name, 'direct-action': isDirectAction, prog: { id, tag } };
}

/** The kernel also lists the chain of a filter, without its options. */
function hasOptions({ options }: TrafficFilterMessage): boolean {
  return options !== undefined;
}

function placeOf({ parent }: TrafficFilterMessage): string {
  const direction = (['ingress', 'egress'] as const).find((each) => parentOf(each) === parent);
  return direction ?? `${(parent >>> 16).toString(16)}:`;
}
