import { attachFilter } from '../../dataplane/fast-path/attach-filter.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { renderOperation } from '../../dataplane/operation.ts';
import { linkFilters } from '../../dataplane/plan-fast-path.ts';
import { parentOf } from '../../netlink/traffic-filter-request.ts';
import { runInBackground } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Lease, LeaseKey } from '../journal/lease.ts';

/** Dependencies of attaching the fast path's programs to new links. */
type AttachNewLinksDeps = {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly log: Logger;
  readonly kernel: Pick<Kernel, 'rtnetlink' | 'flows'>;
  readonly state: {
    readonly leases: ReadonlyMap<LeaseKey, Lease>;
    /** Links that get no filters yet. */
    readonly newLinks: Set<LeaseKey>;
    readonly kickPass: (cause: string) => void;
  };
  /** Whether filters of the fast path are planned now. */
  readonly isWanted: () => boolean;
};

/** Attaches the fast path's programs to links of Pods, some time after their ADDs. */
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
 * Opens the queue of new links. Until a link's time comes no pass attaches filters either: it is in `state.newLinks`. What
 * cannot be attached is left to a pass, which reports why.
 */
export function openNewLinks(deps: AttachNewLinksDeps): NewLinks {
  const { clock, state } = deps;
  const waiting: { readonly key: LeaseKey; readonly dueMs: number }[] = [];
  const closing = new AbortController();
  let isRunning = false;
  const run = async (): Promise<void> => {
    try {
      for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
        // One link a turn of the event loop: each takes half a millisecond, and ADDs come in bursts.
        await clock.sleep(Math.max(0, first.dueMs - clock.monotonicMs()), closing.signal);
        waiting.shift();
        state.newLinks.delete(first.key);
        attach(deps, first.key);
      }
    } catch (error) {
      if (!closing.signal.aborted) throw error;
    } finally {
      isRunning = false;
    }
  };
  return {
    add: (key) => {
      if (!deps.isWanted() || closing.signal.aborted) return;
      state.newLinks.add(key);
      waiting.push({ key, dueMs: clock.monotonicMs() + SETTLE_MS });
      if (isRunning) return;
      isRunning = true;
      runInBackground('attaching the fast path to new links', run());
    },
    close: () => closing.abort(),
  };
}

function attach({ kernel, state, isWanted, log }: AttachNewLinksDeps, key: LeaseKey): void {
  const lease = state.leases.get(key);
  const { ifindex, name } = lease?.hostVeth ?? {};
  // The Pod is gone, or its end has begun.
  if (lease?.state !== 'active' || ifindex === undefined || name === undefined || !isWanted()) return;
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
