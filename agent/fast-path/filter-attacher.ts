import { attachFilter } from '../../dataplane/fast-path/attach-filter.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { linkFilters } from '../../dataplane/plan-fast-path.ts';
import { parentOf } from '../../netlink/traffic-filter-request.ts';
import type { Logger } from '../../runtime/log.ts';
import type { LinkAttacher, NewLink } from './attach-new-links.ts';

/** Dependencies of attaching the fast path's programs. */
type FilterAttacherDeps = {
  readonly log: Logger;
  readonly kernel: Pick<Kernel, 'rtnetlink' | 'flows'>;
  readonly state: { readonly kickPass: (cause: string) => void };
};

/** Attaches the fast path's programs: one link a turn of the event loop, as each takes half a millisecond, and ADDs come in bursts. */
export function filterAttacher(deps: FilterAttacherDeps): LinkAttacher {
  return {
    most: 1,
    gatherMs: 0,
    attach: (links) => {
      for (const link of links) attach(deps, link);
    },
  };
}

function attach({ kernel, state, log }: FilterAttacherDeps, { ifindex, name }: NewLink): void {
  try {
    if (hasFilters(kernel.rtnetlink, ifindex)) {
      state.kickPass('filters of others on a new link');
      return;
    }
    const filters = linkFilters(ifindex, name);
    for (const filter of filters) attachFilter(kernel, filter);
    const requests = filters.map((filter) => renderOperation({ kind: 'attach-filter', filter }));
    log.info('kernel changed', { requests, cause: `new link ${name}` });
  } catch (error) {
    log.debug('the fast path is not attached to a new link, a pass tries again', { link: name, error });
    state.kickPass('filters of a new link');
  }
}

function hasFilters(rtnetlink: Kernel['rtnetlink'], ifindex: number): boolean {
  return (['ingress', 'egress'] as const).some(
    (direction) => rtnetlink.trafficFilter.list({ ifindex, parent: parentOf(direction) }).length > 0,
  );
}
