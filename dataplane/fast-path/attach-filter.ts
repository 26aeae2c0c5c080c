import { isNetlinkError } from '../../netlink/netlink-error.ts';
import type { Request } from '../../netlink/request.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { parentOf, type TrafficFilterRef } from '../../netlink/traffic-filter-request.ts';
import type { FilterState } from '../desired.ts';
import type { Kernel } from '../kernel.ts';
import { FLOW_FILTER } from '../numbers.ts';

/** An operation on a filter that cannot be done here: NO_PROGRAMS, none are loaded. */
class FilterError extends Error {
  override readonly name = 'FilterError';
  readonly code = 'NO_PROGRAMS';

  constructor({ ifname, direction }: FilterState) {
    super(`${ifname} ${direction}: the programs of the fast path are not loaded in this process; the agent loads them`);
  }
}

/**
 * Attaches one of the fast path's programs to a link; one that is there is replaced in one step. Idempotent.
 * @throws FilterError, NetlinkError
 */
export function attachFilter({ rtnetlink, flows }: Pick<Kernel, 'rtnetlink' | 'flows'>, filter: FilterState): void {
  if (flows === undefined) throw new FilterError(filter);
  const { fd, name } = flows[filter.program];
  const [discipline, attached] = rtnetlink.execute([
    { object: 'qdisc', verb: 'add', spec: { ifindex: filter.ifindex, kind: 'clsact' } },
    { object: 'filter', verb: 'replace', spec: { ...placeOf(filter), program: { fd, name } } },
  ]);
  if (attached?.kind !== 'error') return;
  // Without its discipline a filter has no place, and the reason is that of the discipline.
  const isCause = discipline?.kind === 'error' && !isNetlinkError(discipline.error, 'EEXIST');
  throw isCause ? discipline.error : attached.error;
}

/**
 * Detaches our filter at this place, then the link's discipline if no filter is left on it. Idempotent.
 * @throws NetlinkError
 */
export function detachFilter(rtnetlink: Rtnetlink, filter: FilterState): 'done' | 'skipped' {
  const outcome = change(rtnetlink, { object: 'filter', verb: 'delete', spec: placeOf(filter) });
  const { ifindex } = filter;
  const isUsed = (['ingress', 'egress'] as const).some(
    (direction) => rtnetlink.trafficFilter.list({ ifindex, parent: parentOf(direction) }).length > 0,
  );
  if (!isUsed) change(rtnetlink, { object: 'qdisc', verb: 'delete', spec: { ifindex, kind: 'clsact' } });
  return outcome;
}

/** Makes a change; what is gone already counts as done. A link without the discipline has no place: EINVAL. */
function change(rtnetlink: Rtnetlink, request: Request): 'done' | 'skipped' {
  const [outcome] = rtnetlink.execute([request]);
  if (outcome?.kind !== 'error') return 'done';
  if (isNetlinkError(outcome.error, 'ENOENT', 'ENODEV', 'EINVAL')) return 'skipped';
  throw outcome.error;
}

function placeOf({ ifindex, direction }: FilterState): TrafficFilterRef {
  return { ifindex, direction, ...FLOW_FILTER };
}
