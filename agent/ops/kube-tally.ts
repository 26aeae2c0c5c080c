import type { KubeObserver } from '../../kube/kube-observer.ts';
import type { KubeUse } from './summary-reply.ts';

/** Counts what is asked of the API server. */
export type KubeTally = { readonly observer: KubeObserver; use(): KubeUse };

/** A turn that comes at once takes a fraction of this. */
const WAITED_MS = 1;

/** Creates a tally of a client with these limits: calls a second in the long run, and at once after a rest. */
export function createKubeTally(limits: { readonly qps: number; readonly burst: number }): KubeTally {
  let calls = 0;
  let failed = 0;
  let throttled = 0;
  let throttledMs = 0;
  return {
    observer: {
      onRequest: ({ verb, outcome }) => {
        // A watch ends now and then by design, and a call that was aborted is nobody's fault.
        calls++;
        if (outcome !== 'ok' && outcome !== 'aborted' && verb !== 'watch') failed++;
      },
      onTurn: (waitedMs) => {
        if (waitedMs < WAITED_MS) return;
        throttled++;
        throttledMs += waitedMs;
      },
    },
    use: () => ({ ...limits, calls, failed, throttled, throttledMs }),
  };
}
