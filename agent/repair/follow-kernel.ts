import type { Monitor } from '../../netlink/monitor.ts';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { AgentParts } from '../state/ports.ts';
import type { RepairLoop } from './repair-loop.ts';

/** Dependencies of following the kernel. */
type FollowKernelDeps = Pick<AgentParts, 'background' | 'clock' | 'log'> & {
  /** Subscribes. @throws LibcError */
  readonly open: () => Monitor;
  readonly loop: Pick<RepairLoop, 'follow' | 'kick'>;
  readonly random: () => number;
};

const RETRY: BackoffSettings = { firstMs: 100, maxMs: 10_000, factor: 2, jitter: 0.3 };
/** A subscription that held so long counts as good: the next failure is tried again at once. */
const GOOD_MS = 60_000;

/**
 * Lets the loop follow the kernel's notifications until `close`. A subscription that ends is opened again, with a pass
 * for what was missed; until then the timer repairs. @throws LibcError when the first one is refused
 */
export function followKernel({ background, open, loop, clock, random, log }: FollowKernelDeps): { close(): void } {
  const closing = new AbortController();
  let monitor = open();
  const follow = async (): Promise<void> => {
    for (let attempt = 1; !closing.signal.aborted; attempt++) {
      const startMs = clock.monotonicMs();
      try {
        await loop.follow(monitor);
      } catch (error) {
        log.error('kernel notifications ended, they are subscribed to again', { error });
      }
      monitor.close();
      if (clock.monotonicMs() - startMs >= GOOD_MS) attempt = 1;
      monitor = await reopen(attempt);
      loop.kick('notifications were lost');
    }
  };
  const reopen = async (failures: number): Promise<Monitor> => {
    for (let attempt = failures; ; attempt++) {
      await clock.sleep(backoffMs(RETRY, attempt, random()), closing.signal);
      try {
        return open();
      } catch (error) {
        log.error('kernel notifications are refused, only the timer repairs now', { error });
      }
    }
  };
  background(
    'following the kernel',
    follow().catch((error: unknown) => {
      if (!closing.signal.aborted) throw error;
    }),
  );
  return {
    close: () => {
      closing.abort();
      monitor.close();
    },
  };
}
