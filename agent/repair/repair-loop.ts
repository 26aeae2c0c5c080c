import type { MonitorEvent } from '../../netlink/monitor.ts';
import { runInBackground } from '../../runtime/background.ts';
import type { Logger } from '../../runtime/log.ts';
import type { ReconcileReport } from './reconcile.ts';

/** Dependencies of the loop. */
type RepairLoopDeps = {
  readonly reconcile: (cause: string) => Promise<ReconcileReport>;
  readonly isRelevant: (event: MonitorEvent) => boolean;
  readonly overrun: () => void;
  /** Called when nftables may have changed, before the pass that this causes. */
  readonly invalidateNft: () => void;
  readonly log: Logger;
  readonly intervalMs: number;
};

/** Accepts requests for passes, which run one at a time. */
export type RepairLoop = {
  /** Requests a pass soon. Several requests within a few milliseconds make one pass. */
  kick(cause: string): void;
  /** Runs a pass that begins after this call; resolves when it is done. */
  pass(cause: string): Promise<ReconcileReport>;
  /** Runs work between passes, so that none runs meanwhile. */
  runExclusive<T>(work: () => Promise<T>): Promise<T>;
  /** Handles events until the monitor ends. */
  follow(events: AsyncIterable<MonitorEvent>): Promise<void>;
  close(): Promise<void>;
};

/** `ip route flush` deletes one by one: a pass after the first deletion would find the rest still there. */
const DEBOUNCE_MS = 3;
/**
 * Delay before a pass is repeated because an ADD or DEL came in between. A failed pass is repeated too, each time
 * later.
 */
const RETRY_MS = 50;
const MAX_FOLLOW_UPS = 5;

/** Starts the loop: passes on request, on relevant kernel events and every `intervalMs`. */
export function startRepairLoop(deps: RepairLoopDeps): RepairLoop {
  let running: Promise<unknown> = Promise.resolve();
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  const causes = new Set<string>();
  const runExclusive = <T>(work: () => Promise<T>): Promise<T> => {
    const next = running.then(work);
    running = next.catch(() => {});
    return next;
  };
  const pass = (cause: string): Promise<ReconcileReport> => runExclusive(() => deps.reconcile(cause));
  const attempt = async (cause: string, followUps: number): Promise<void> => {
    const retry = (inMs: number): void => {
      if (followUps < MAX_FOLLOW_UPS && !isClosed) setTimeout(() => start(cause, followUps + 1), inMs);
    };
    try {
      if ((await pass(cause)).isStale) retry(RETRY_MS);
    } catch (error) {
      // The cause may be temporary: nft was busy, a dump was interrupted by changes again and again.
      deps.log.error('reconciling failed, will be tried again', { cause, error });
      retry(RETRY_MS << followUps);
    }
  };
  const start = (cause: string, followUps: number): void => runInBackground('repairing', attempt(cause, followUps));
  const kick = (cause: string): void => {
    causes.add(cause);
    if (isClosed || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      const all = [...causes].join(', ');
      causes.clear();
      start(all, 0);
    }, DEBOUNCE_MS);
  };
  const interval = setInterval(() => {
    // The timer's pass reads everything anew, whatever was notified or missed.
    deps.invalidateNft();
    kick('timer');
  }, deps.intervalMs);
  return {
    kick,
    pass,
    runExclusive,
    follow: async (events) => {
      for await (const event of events) {
        if (isClosed) return;
        if (event.kind === 'overrun') deps.overrun();
        if (event.kind === 'overrun' || event.kind === 'nftables') deps.invalidateNft();
        if (deps.isRelevant(event)) kick(causeOf(event));
      }
    },
    close: async () => {
      isClosed = true;
      clearInterval(interval);
      clearTimeout(timer);
      await running;
    },
  };
}

/** Names what caused an event, as far as the kernel reports it. */
function causeOf(event: MonitorEvent): string {
  switch (event.kind) {
    case 'overrun':
      return 'notifications were lost';
    case 'nftables': {
      const who = event.process === undefined ? '' : ` by ${event.process} (pid ${event.pid ?? '?'})`;
      return `nftables changed${who}`;
    }
    default:
      // A netlink port number is the pid of the process for its first socket; for the kernel itself it is 0.
      return `${event.kind} ${event.op} by port ${event.portid}`;
  }
}
