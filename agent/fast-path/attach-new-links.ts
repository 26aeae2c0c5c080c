import { attachFilter } from '../../dataplane/fast-path/attach-filter.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { linkFilters } from '../../dataplane/plan-fast-path.ts';
import { parentOf } from '../../netlink/traffic-filter-request.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Lease, LeaseKey } from '../journal/lease.ts';

/** The host link of a Pod. */
type NewLink = { readonly ifindex: number; readonly name: string };

/** How links get what the fast path needs on them. */
export type LinkAttacher = {
  /** Most links of one call, which keeps the process busy. */
  readonly most: number;
  /** So long it waits for more links, milliseconds. */
  readonly gatherMs: number;
  /** Attaches it. What cannot be attached is left to a pass, which reports why. */
  attach(links: readonly NewLink[]): void | Promise<void>;
};

/** Dependencies of attaching the fast path to new links. */
type AttachNewLinksDeps = {
  readonly background: Background;
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly state: {
    readonly leases: ReadonlyMap<LeaseKey, Lease>;
    /** Links that have no part in the fast path yet. */
    readonly newLinks: Set<LeaseKey>;
  };
  /** Whether the fast path of `attacher` is planned now. */
  readonly isWanted: () => boolean;
  readonly attacher: LinkAttacher;
};

/** Attaches the fast path to links of Pods, some time after their ADDs. */
export type NewLinks = {
  /** Takes note of a link that was made. Costs an ADD nothing. */
  add(key: LeaseKey): void;
  /** Ends it; what waits is attached by the first pass of the next agent. Idempotent. */
  close(): void;
};

/**
 * So long after our part of an ADD the plugins after ours are done, milliseconds. The bandwidth plugin needs the place of
 * the link's filters for itself, and its ADD would fail if it was taken.
 */
const SETTLE_MS = 5_000;

/**
 * Opens the queue of new links. Until a link's time comes no pass attaches anything either: it is in `state.newLinks`. Links that
 * are due together are attached together.
 */
export function openNewLinks({ background, clock, state, isWanted, attacher }: AttachNewLinksDeps): NewLinks {
  const waiting: { readonly key: LeaseKey; readonly dueMs: number }[] = [];
  const closing = new AbortController();
  let isRunning = false;
  const takeDue = (): readonly NewLink[] => {
    const nowMs = clock.monotonicMs();
    const count = Math.min(attacher.most, Math.max(1, waiting.findLastIndex(({ dueMs }) => dueMs <= nowMs) + 1));
    const keys = waiting.splice(0, count).map(({ key }) => key);
    for (const key of keys) state.newLinks.delete(key);
    return isWanted() ? keys.flatMap((key) => linkOf(state.leases.get(key))) : [];
  };
  const run = async (): Promise<void> => {
    try {
      for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
        await clock.sleep(Math.max(0, first.dueMs + attacher.gatherMs - clock.monotonicMs()), closing.signal);
        const links = takeDue();
        if (links.length > 0) await attacher.attach(links);
      }
    } catch (error) {
      if (!closing.signal.aborted) throw error;
    } finally {
      isRunning = false;
    }
  };
  return {
    add: (key) => {
      if (!isWanted() || closing.signal.aborted) return;
      state.newLinks.add(key);
      waiting.push({ key, dueMs: clock.monotonicMs() + SETTLE_MS });
      if (isRunning) return;
      isRunning = true;
      background('attaching the fast path to new links', run());
    },
    close: () => closing.abort(),
  };
}

/** Returns the link of a Pod; none when the Pod is gone, or its end has begun. */
function linkOf(lease: Lease | undefined): readonly NewLink[] {
  const { ifindex, name } = lease?.hostVeth ?? {};
  return lease?.state !== 'active' || ifindex === undefined || name === undefined ? [] : [{ ifindex, name }];
}

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
