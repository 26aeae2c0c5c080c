import type { MonitorEvent } from '../../netlink/monitor.ts';
import { senderName } from '../../netlink/sender-name.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type ClockTimer, intervalOn, timerOn } from '../../runtime/clock-timers.ts';
import type { Logger } from '../../runtime/log.ts';
import type { ReconcileReport } from './reconcile.ts';

/** Dependencies of the loop. */
type RepairLoopDeps = {
  readonly background: Background;
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly reconcile: (cause: string) => Promise<ReconcileReport>;
  /** Called with every notification. */
  readonly note: (event: MonitorEvent) => void;
  /** Called with every notification of a change that is not our own. */
  readonly noteForeign: (event: MonitorEvent) => void;
  /** Reports whether a notification is about a change of our own. */
  readonly isOwn: (event: MonitorEvent) => boolean;
  /** Reports whether a change by others calls for a pass. Not asked while one is due anyway. */
  readonly isRelevant: (event: MonitorEvent) => boolean;
  /**
   * Reports whether one of some settings below /proc/sys is not as planned; asked every 250 ms, because the kernel does not
   * notify all of them.
   */
  readonly settingsDiffer: () => boolean;
  readonly overrun: () => void;
  /** Called when nftables may have changed, before the pass that this causes. */
  readonly invalidateNft: () => void;
  /** Called when the traffic filters of a link, or of any link, may have changed, before the pass that this causes. */
  readonly invalidateFilters: (ifindex?: number) => void;
  /** Called when a link left the namespace, before the pass that this causes. */
  readonly forgetFilters: (ifindex: number) => void;
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
/** Delay before a pass is repeated because an ADD or DEL came in between. */
const RETRY_MS = 50;
/** A pass that failed is repeated until one succeeds, each time twice as late, at last so often. */
const MAX_RETRY_MS = 5_000;
/**
 * The next pass waits so many times as long as the last one took, so that passes take a fifth of the time at most,
 * whatever others do. The first one after a pause does not wait.
 */
const PAUSE_FACTOR = 4;
const MAX_PAUSE_MS = 500;

/** A twentieth of the settings that are not notified is read so often, so all of them every 5 s; what packets need at once, each time. */
const SETTINGS_MS = 250;

/** Starts the loop: passes on request, on relevant kernel events and every `intervalMs`. */
export function startRepairLoop(deps: RepairLoopDeps): RepairLoop {
  let running: Promise<unknown> = Promise.resolve();
  let isClosed = false;
  let timer: ClockTimer | undefined;
  let notBeforeMs = Number.NEGATIVE_INFINITY;
  let failures = 0;
  let isAttempting = false;
  const causes = new Set<string>();
  const later = openLater(deps.clock, (cause) => kick(cause));

  const runExclusive = <T>(work: () => Promise<T>): Promise<T> => {
    const next = running.then(work);
    running = next.catch(() => {});
    return next;
  };
  const timed = async (cause: string): Promise<ReconcileReport> => {
    const startMs = deps.clock.monotonicMs();
    try {
      return await deps.reconcile(cause);
    } finally {
      const endMs = deps.clock.monotonicMs();
      notBeforeMs = endMs + Math.min(MAX_PAUSE_MS, PAUSE_FACTOR * (endMs - startMs));
    }
  };
  const pass = async (cause: string): Promise<ReconcileReport> => {
    const report = await runExclusive(() => timed(cause));
    failures = 0;
    if (report.recheckInMs !== undefined) later.in(report.recheckInMs, 'back-off');
    return report;
  };
  const attempt = async (cause: string): Promise<void> => {
    isAttempting = true;
    try {
      if ((await pass(cause)).isStale) later.in(RETRY_MS, cause);
    } catch (error) {
      // The cause may be temporary: nft was busy, a dump was interrupted by changes again and again.
      deps.log.error('reconciling failed, will be tried again', { cause, error });
      later.in(Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** failures), cause);
      failures += 1;
    } finally {
      isAttempting = false;
      arm();
    }
  };
  /** Sets the timer of the next pass if one is called for. One that was called for during a pass comes after its pause. */
  const arm = (): void => {
    if (isClosed || isAttempting || timer !== undefined || causes.size === 0) return;
    timer = timerOn(
      deps.clock,
      () => {
        timer = undefined;
        const all = [...causes].join(', ');
        causes.clear();
        deps.background('repairing', attempt(all));
      },
      Math.max(DEBOUNCE_MS, notBeforeMs - deps.clock.monotonicMs()),
    );
  };
  const kick = (cause: string): void => {
    causes.add(cause);
    arm();
  };

  const timers = startTimers(deps, kick, () => causes.size === 0 && !isAttempting);
  const handle = (event: MonitorEvent): void => {
    deps.note(event);
    if (event.kind === 'overrun') deps.overrun();
    noteFilters(deps, event);
    if (deps.isOwn(event)) return;
    deps.noteForeign(event);
    if (event.kind === 'overrun' || event.kind === 'nftables') deps.invalidateNft();
    if (causes.size === 0 && isTrueOrUnknown(deps, () => deps.isRelevant(event))) kick(causeOf(event));
  };

  return {
    kick,
    pass,
    runExclusive,
    follow: async (events) => {
      for await (const event of events) {
        if (isClosed) return;
        handle(event);
      }
    },
    close: async () => {
      isClosed = true;
      timers.close();
      timer?.cancel();
      later.close();
      await running;
    },
  };
}

/** Own changes count too: what is known of a link's filters is what was read. */
function noteFilters({ invalidateFilters, forgetFilters }: RepairLoopDeps, event: MonitorEvent): void {
  if (event.kind === 'overrun') invalidateFilters();
  if (event.kind === 'link' && event.op === 'del') forgetFilters(event.message.ifindex);
  if (event.kind === 'qdisc' || event.kind === 'filter') invalidateFilters(event.message.ifindex);
}

function startTimers(deps: RepairLoopDeps, kick: (cause: string) => void, isIdle: () => boolean): { close(): void } {
  const interval = intervalOn(
    deps.clock,
    () => {
      // The timer's pass reads everything again, whatever was notified or missed.
      deps.invalidateNft();
      deps.invalidateFilters();
      kick('timer');
    },
    deps.intervalMs,
  );
  const settings = intervalOn(
    deps.clock,
    () => {
      if (isIdle() && isTrueOrUnknown(deps, deps.settingsDiffer)) kick('sysctl');
    },
    SETTINGS_MS,
  );
  return {
    close: () => {
      interval.cancel();
      settings.cancel();
    },
  };
}

/** What cannot be compared with the plan is left to a pass, which reports why. */
function isTrueOrUnknown({ log }: Pick<RepairLoopDeps, 'log'>, question: () => boolean): boolean {
  try {
    return question();
  } catch (error) {
    log.warn('settings or notifications cannot be compared with the plan', { error });
    return true;
  }
}

/** One timer for all: the earliest time that was asked for counts, and the pass asks for what comes after it. */
function openLater(
  clock: RepairLoopDeps['clock'],
  call: (cause: string) => void,
): { in(delayMs: number, cause: string): void; close(): void } {
  let timer: ClockTimer | undefined;
  let atMs = Number.POSITIVE_INFINITY;
  let isClosed = false;
  return {
    in: (delayMs, cause) => {
      const wantedMs = clock.monotonicMs() + delayMs;
      if (isClosed || wantedMs >= atMs) return;
      timer?.cancel();
      atMs = wantedMs;
      timer = timerOn(
        clock,
        () => {
          atMs = Number.POSITIVE_INFINITY;
          call(cause);
        },
        delayMs,
      );
    },
    close: () => {
      isClosed = true;
      timer?.cancel();
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
    default: {
      // Of links, neighbours, settings and IPv6 addresses the kernel names no sender.
      const isKnown = event.portid !== 0 || event.kind === 'rule' || event.kind === 'route';
      const sender = isKnown ? senderName(event.portid) : undefined;
      return sender === undefined ? `${event.kind} ${event.op}` : `${event.kind} ${event.op} by ${sender}`;
    }
  }
}
