import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { filterProgram, type TrafficFilterMessage } from '../../netlink/traffic-filter-message.ts';
import { parentOf } from '../../netlink/traffic-filter-request.ts';
import type { Kernel } from '../kernel.ts';
import type { ObservedFilters } from '../observed.ts';
import { type FlowFilter, flowFilterOf } from './flow-filter.ts';

/** Reads the traffic filters of the links of one namespace, and remembers them. */
type FilterReader = {
  /**
   * Returns the filters of the links in `names`. Reads the disciplines of all links and the filters of those that may have
   * changed; nothing while nothing may have. @throws NetlinkError
   */
  read(names: ReadonlyMap<number, string>): ObservedFilters;
  /** Makes the next `read` read the kernel: for one link, or for all. */
  invalidate(ifindex?: number): void;
  /**
   * Forgets a link that left the namespace: its filters went with it, which is not notified, and one of the same index may be there
   * before the next `read`. Costs that nothing.
   */
  forget(ifindex: number): void;
};

type LinkFilters = { readonly ours: readonly FlowFilter[]; readonly foreign: readonly string[] };

const NONE: LinkFilters = { ours: [], foreign: [] };
const DIRECTIONS = ['ingress', 'egress'] as const;

/** Opens a reader; it has read nothing yet. */
export function openFilterReader(kernel: Pick<Kernel, 'rtnetlink' | 'flows'>): FilterReader {
  const known = new Map<number, LinkFilters>();
  /** Links that may have changed; undefined: all. */
  let changed: Set<number> | undefined;
  const refresh = (): void => {
    const before = changed;
    if (before === undefined) known.clear();
    // What changes while this reads is notified, and read again.
    changed = new Set();
    if (before?.size === 0) return;
    for (const ifindex of before ?? []) known.delete(ifindex);
    try {
      for (const { ifindex, kind } of kernel.rtnetlink.qdisc.list()) {
        if (kind !== 'clsact' && kind !== 'ingress') continue;
        if (before !== undefined && !before.has(ifindex)) continue;
        known.set(
          ifindex,
          kind === 'clsact' ? readLink(kernel.rtnetlink, ifindex) : { ...NONE, foreign: ['a discipline ingress'] },
        );
      }
    } catch (error) {
      changed = undefined;
      throw error;
    }
  };
  return {
    read: (names) => {
      refresh();
      const links = [...known].flatMap(([ifindex, filters]) => {
        const ifname = names.get(ifindex);
        if (ifname !== undefined) return [{ ifindex, ifname, filters }];
        // The filters went with the link, which is not notified.
        known.delete(ifindex);
        return [];
      });
      return {
        ours: links.flatMap(({ ifname, filters }) =>
          filters.ours.map(({ programId, ...filter }) => {
            const loaded = kernel.flows?.[filter.program];
            return { ...filter, ifname, isCurrent: loaded === undefined || loaded.id === programId };
          }),
        ),
        foreign: links.flatMap(({ ifindex, ifname, filters }) =>
          filters.foreign.map((shown) => ({ ifindex, ifname, shown })),
        ),
      };
    },
    invalidate: (ifindex) => {
      if (ifindex === undefined) changed = undefined;
      else changed?.add(ifindex);
    },
    forget: (ifindex) => {
      known.delete(ifindex);
    },
  };
}

function readLink(rtnetlink: Rtnetlink, ifindex: number): LinkFilters {
  const found = DIRECTIONS.flatMap((direction) =>
    rtnetlink.trafficFilter
      .list({ ifindex, parent: parentOf(direction) })
      // The kernel also lists the chain of a filter, without its options.
      .filter(({ options }) => options !== undefined)
      .map((message) => ({ direction, message, filter: flowFilterOf(message) })),
  );
  return {
    ours: found.flatMap(({ filter }) => filter ?? []),
    foreign: found.flatMap(({ direction, message, filter }) =>
      filter === undefined ? [`a filter ${direction} pref ${message.priority} ${describe(message)}`] : [],
    ),
  };
}

function describe(message: TrafficFilterMessage): string {
  const name = filterProgram(message)?.name ?? '';
  return name === '' ? message.kind : `${message.kind} ${name}`;
}
