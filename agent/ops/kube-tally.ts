import type { KubeObserver } from '../../kube/kube-observer.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { KubeUse } from './summary-reply.ts';

/** Counts the requests to the API server. */
type KubeTally = { readonly observer: KubeObserver; use(): KubeUse };

const MS_PER_S = 1_000;
/** Shortest wait that counts as one, milliseconds: without a wait a request takes a fraction of this. */
const WAITED_MS = 1;

/**
 * Creates counters for a client with these limits: requests a second in the long run, and at once after a pause. It
 * computes how many requests are left by the same rule as the client; watches do not count.
 */
export function createKubeTally(
  limits: { readonly qps: number; readonly burst: number },
  clock: Pick<Clock, 'monotonicMs'>,
): KubeTally {
  const { qps, burst } = limits;
  let calls = 0;
  let failed = 0;
  let throttled = 0;
  let throttledMs = 0;
  let left = burst;
  let countedMs = clock.monotonicMs();
  const leftNow = (): number => {
    const nowMs = clock.monotonicMs();
    left = Math.min(burst, left + ((nowMs - countedMs) * qps) / MS_PER_S);
    countedMs = nowMs;
    return left;
  };
  return {
    observer: {
      onRequest: ({ verb, outcome }) => {
        calls++;
        // A watch ends now and then by design, and a request that was aborted is no failure.
        if (outcome !== 'ok' && outcome !== 'aborted' && verb !== 'watch') failed++;
      },
      onRateLimitWait: (waitedMs) => {
        const before = leftNow();
        // If a request was left when it came, it did not wait for the limit: the process was busy.
        const hadToWait = waitedMs >= WAITED_MS && before - (waitedMs * qps) / MS_PER_S < 1;
        left = Math.max(0, before - 1);
        if (!hadToWait) return;
        throttled++;
        throttledMs += waitedMs;
      },
    },
    use: () => ({ ...limits, calls, failed, throttled, throttledMs, tokensLeft: Math.floor(leftNow()) }),
  };
}
