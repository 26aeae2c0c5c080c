import type { MonitorEvent } from '../../netlink/monitor.ts';
import { AF_INET6 } from '../../netlink/uapi/netlink.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';

/** Ends the flows of the fast path when the kernel's decision about them may be another one now. */
export type FlowEpochs = {
  /** Looks at a notification of what others changed. */
  note(event: MonitorEvent): void;
  /** Ends the flows after a change of our own, in the same pace. */
  forget(cause: string): void;
  close(): void;
};

/** How the flows of one kind of fast path end. */
type Ending = {
  /** Flows end so often at most: each learns again by one packet on the slow way, and rules may change hundreds of times a second. */
  readonly pauseMs: number;
  /** Reports whether the kernel may decide otherwise about a flow that is followed after this. */
  readonly mayEnd: (event: MonitorEvent) => boolean;
  /** Reports whether the last end may itself be why this is notified, within its pause. */
  readonly isEcho: (event: MonitorEvent) => boolean;
};

const ENDINGS = {
  bpf: { pauseMs: 50, mayEnd: mayChangeDecision, isEcho: () => false },
  // Each end is a run of nft. Its notification does not fit where the flowtable has many devices, and counts as lost.
  flowtable: { pauseMs: 1_000, mayEnd: mayOutliveFlowtable, isEcho: ({ kind }) => kind === 'overrun' },
} as const satisfies Readonly<Record<string, Ending>>;

/**
 * Calls `forget` at the first notification, and once more at the end of a pause in which others came. The pause begins when
 * `forget` is done. One that fails is called again after the pause.
 * @param forget called with the kind of the notification that came first
 */
export function openFlowEpochs(
  { background, clock }: { readonly background: Background; readonly clock: Pick<Clock, 'sleep'> },
  mode: keyof typeof ENDINGS,
  forget: (cause: string) => void | Promise<void>,
): FlowEpochs {
  const { pauseMs, mayEnd, isEcho }: Ending = ENDINGS[mode];
  const closing = new AbortController();
  let isPausing = false;
  let pending: string | undefined;
  const end = async (cause: string): Promise<void> => {
    isPausing = true;
    try {
      const ended = forget(cause);
      if (ended !== undefined) await ended;
    } catch {
      pending ??= cause;
    }
    try {
      await clock.sleep(pauseMs, closing.signal);
    } catch {
      // Closed.
      return;
    }
    isPausing = false;
    const next = pending;
    pending = undefined;
    if (next !== undefined) background('ending flows', end(next));
  };
  const request = (cause: string): void => {
    if (closing.signal.aborted) return;
    if (isPausing) pending ??= cause;
    else background('ending flows', end(cause));
  };
  return {
    note: (event) => {
      if (mayEnd(event) && !(isPausing && isEcho(event))) request(event.kind);
    },
    forget: request,
    close: () => closing.abort(),
  };
}

/**
 * Reports whether the kernel may decide otherwise about a flow after this. A neighbour that changed is seen
 * by the next packet on the slow way, a second later at most.
 */
function mayChangeDecision(event: MonitorEvent): boolean {
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

/**
 * Tells the same of a flowtable. The kernel itself ends its flows with their link, and asks for each packet whether the route is
 * still in force: any change of IPv4 routes, rules, addresses, MTUs or forwarding ends that. Of IPv6 only changes of the same table do.
 * What the kernel changes itself, as with each new link, has no sender.
 */
function mayOutliveFlowtable(event: MonitorEvent): boolean {
  switch (event.kind) {
    case 'overrun':
    case 'nftables':
    case 'rule':
      return true;
    case 'route':
      return event.portid !== 0 && event.message.family === AF_INET6;
    default:
      return false;
  }
}
