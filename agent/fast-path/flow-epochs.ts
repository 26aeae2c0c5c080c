import type { MonitorEvent } from '../../netlink/monitor.ts';
import type { Clock } from '../../runtime/clock.ts';

/** Ends the flows of the fast path when the kernel's decision about them may be another one now. */
export type FlowEpochs = {
  /** Looks at a notification of what others changed. */
  note(event: MonitorEvent): void;
  /** Ends the flows after a change of our own, in the same pace. */
  forget(cause: string): void;
  close(): void;
};

/** Flows end so often at most: each learns anew by one packet on the slow way, and rules may change hundreds of times a second. */
const PAUSE_MS = 50;

/**
 * Calls `forget` at the first notification, and once more at the end of a pause in which others came.
 * @param forget called with the kind of the notification that came first
 */
export function openFlowEpochs(clock: Pick<Clock, 'sleep'>, forget: (cause: string) => void): FlowEpochs {
  const closing = new AbortController();
  let isPausing = false;
  let pending: string | undefined;
  const end = (cause: string): void => {
    isPausing = true;
    forget(cause);
    clock.sleep(PAUSE_MS, closing.signal).then(
      () => {
        isPausing = false;
        const next = pending;
        pending = undefined;
        if (next !== undefined) end(next);
      },
      // Closed.
      () => {},
    );
  };
  const request = (cause: string): void => {
    if (closing.signal.aborted) return;
    if (isPausing) pending ??= cause;
    else end(cause);
  };
  return {
    note: (event) => {
      if (mayEndFlows(event)) request(event.kind);
    },
    forget: request,
    close: () => closing.abort(),
  };
}

/**
 * Tells whether the kernel may decide otherwise about a flow after this. A neighbour that changed is seen
 * by the next packet on the slow way, a second later at most.
 */
function mayEndFlows(event: MonitorEvent): boolean {
  switch (event.kind) {
    case 'overrun':
    case 'nftables':
    case 'route':
    case 'rule':
    case 'netconf':
    case 'link':
      return true;
    case 'address':
      return event.op === 'del';
    case 'neigh':
    case 'qdisc':
    case 'filter':
      return false;
  }
}
