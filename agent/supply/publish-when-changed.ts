import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { ChangeSignal } from '../../runtime/change-signal.ts';
import type { AgentParts } from '../state/ports.ts';

/** Dependencies of repeated publications. */
type PublishLoopDeps = Pick<AgentParts, 'clock' | 'log'> & {
  readonly random: () => number;
  /** Notified when what is published may have changed. */
  readonly demandChanged: ChangeSignal;
  readonly publisher: {
    /** Time until the next publication if nothing changes, milliseconds. */
    nextPassMs(): number;
    publish(signal: AbortSignal): Promise<void>;
  };
  /** Called after a publication that failed. */
  readonly failed: () => void;
};

/** Interval of publications when no change is notified. */
export const POLL_MS = 60_000;
/** Pause after which a burst of Pods becomes one write; short, because ADDs wait for the answer to it. */
const GATHER_MS = 50;
const BACKOFF: BackoffSettings = { firstMs: 500, maxMs: 10_000, factor: 2, jitter: 0.5 };

/** Publishes whenever it may be due, until aborted; one that failed is tried again, later each time. Never rejects. */
export async function publishWhenChanged(deps: PublishLoopDeps, signal: AbortSignal): Promise<void> {
  const { publisher } = deps;
  let failures = 0;
  while (!signal.aborted) {
    const { count } = deps.demandChanged;
    try {
      await publisher.publish(signal);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      deps.failed();
      deps.log.warn('demand not published, will be tried again', { error, failures });
      await pause(deps, backoffMs(BACKOFF, failures, deps.random()), signal);
      continue;
    }
    // A change during the publication leads to another pass.
    if (deps.demandChanged.count === count) await deps.demandChanged.wait(publisher.nextPassMs(), signal);
    await pause(deps, GATHER_MS, signal);
  }
}

async function pause({ clock }: PublishLoopDeps, ms: number, signal: AbortSignal): Promise<void> {
  await clock.sleep(ms, signal).catch(() => {});
}
