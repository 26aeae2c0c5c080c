import { MUTATIONS } from '../../crd/intent.ts';
import type { Intent } from './decision.ts';

/** Whether a recorded intent may be resolved now. */
type IntentResolution = { readonly kind: 'wait'; readonly ms: number } | { readonly kind: 'resolve' };

/** The leader that checks an intent. */
type ResolutionContext = {
  readonly ownEpoch: number;
  /** When this leader first read the intent; for its own intents, when the call ended. Monotonic milliseconds. */
  readonly firstSeenMs: number;
  readonly leaseMs: number;
};

/** Errors after which the request may still arrive at the cloud. */
const MAY_STILL_ARRIVE: readonly string[] = ['TIMEOUT', 'NETWORK'];

/**
 * Decides when an intent may be resolved, if this process does not wait for its call.
 * One with a task was answered: at once. An inherited one waits for lease and request timeout: until then its sender
 * may be alive and its request may arrive. An own one waits only where a request that arrives late does harm: the call
 * takes no ClientToken, and the error leaves open whether it arrives.
 */
export function decideIntentResolution(
  intent: Intent,
  { nowMs, ...context }: ResolutionContext & { readonly nowMs: number },
): IntentResolution {
  if (intent.phase === 'Accepted' && intent.taskID !== undefined) return { kind: 'resolve' };
  if (intent.leaderEpoch === context.ownEpoch && !isHarmfulLate(intent)) return { kind: 'resolve' };
  const leftMs = mayArriveUntilMs(intent, context) - nowMs;
  return leftMs > 0 ? { kind: 'wait', ms: leftMs } : { kind: 'resolve' };
}

/** Returns until when a request for an intent may arrive at the cloud; monotonic milliseconds. */
export function mayArriveUntilMs(intent: Intent, { ownEpoch, firstSeenMs, leaseMs }: ResolutionContext): number {
  const isOwn = intent.leaderEpoch === ownEpoch;
  if (isOwn && !mayStillArrive(intent)) return firstSeenMs;
  return firstSeenMs + (isOwn ? 0 : leaseMs) + intent.requestTimeoutSeconds * 1000;
}

/** Reports whether a late request does harm. The id of an ENI is never used again, so a late deletion finds nothing. */
function isHarmfulLate(intent: Intent): boolean {
  if (MUTATIONS[intent.action].takesClientToken || intent.action === 'DeleteNetworkInterface') return false;
  return intent.phase === 'Unclear' && mayStillArrive(intent);
}

function mayStillArrive({ lastError }: Intent): boolean {
  return MAY_STILL_ARRIVE.includes(lastError?.code ?? 'TIMEOUT');
}
